"""The reader's worker for the embedded engine with little memory: MIB before its own four numbers."""

from __future__ import annotations

import resource
import sys

if __name__ == "__main__":
    size = int(sys.argv[1]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    from dpone.adapters.reader.worker import main

    main(sys.argv[2:])
