"""Opening any store's URL in a test, in this process or a writer's."""

from __future__ import annotations

from dpone.ledger.store import EventLedger, open_ledger

from .events import CODEC


def opened(url: str) -> EventLedger:
    """The ledger that is there."""
    if not url.startswith("keepermap://"):
        return open_ledger(url, create=False, codec=CODEC)
    from .embedded_sql import attach, connect

    attach(url.rpartition("/")[2])
    return open_ledger(url, create=False, codec=CODEC, connect=connect)
