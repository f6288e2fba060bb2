"""The reader's worker for servers, which reaches them through relays: PORTS before its own four numbers."""

from __future__ import annotations

import sys

from dpone.adapters.reader.server_worker import main
from tests.faults.redirecting import ports_of, redirect

if __name__ == "__main__":
    redirect(ports_of(sys.argv[1]))
    main(sys.argv[2:])
