"""A process that appends whole lives of operations: ``URL TABLE COUNT``. Begins when a line arrives, as others do."""

from __future__ import annotations

import sys

from dpone.ledger.store import open_ledger
from tests.ledger.writer import wait_for_start

from .histories import append_lives

if __name__ == "__main__":
    url, table, count = sys.argv[1:]
    with open_ledger(url, create=False) as ledger:
        wait_for_start()
        append_lives(ledger, table, int(count))
