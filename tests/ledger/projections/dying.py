"""A process that projects and is killed in the middle of a transaction: ``LEDGER TARGET BATCH``.

It dies in the batch of that number, once the rows of the first table are written and nothing else is.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from dpone.ledger.projections import following, postgres, sqlite, statements
from dpone.ledger.projections.folding import RowChange
from dpone.ledger.projections.target import open_target
from dpone.ledger.store import open_ledger

BATCH_EVENTS = 8

if __name__ == "__main__":
    url, to, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
    batches = 0

    def rows_until_death(changes: Iterable[RowChange]) -> Iterator[Any]:
        global batches
        batches += 1
        for part in statements.last_rows(changes):
            yield part
            if batches == last:
                os.kill(os.getpid(), signal.SIGKILL)

    for module in (sqlite, postgres):
        setattr(module, "last_rows", rows_until_death)  # noqa: B010 - a generator in the place of a list
    setattr(following, "BATCH_EVENTS", BATCH_EVENTS)  # noqa: B010 - a constant
    with open_ledger(url, create=False) as ledger:
        follower = following.Follower(ledger, open_target(to))
        follower.catch_up(follower.begin())
