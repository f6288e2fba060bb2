"""Opening the ledger for commands that only look: it is never created here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...ledger.store import EventLedger


@contextmanager
def opened_ledger(environ: Mapping[str, str], option: str | None) -> Iterator[EventLedger]:
    """The ledger of ``--ledger``, of the environment, or of the home. Raises LedgerFailed."""
    from ...ledger.store import open_ledger
    from ..connections.sql import connect_by
    from ..runtime.settings import settings_from

    settings = settings_from(environ, option)
    ledger = open_ledger(settings.ledger_url, create=False, connect=connect_by(settings))
    try:
        yield ledger
    finally:
        ledger.close()
