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
    from ..runtime.settings import settings_from

    ledger = open_ledger(settings_from(environ, option).ledger_url, create=False)
    try:
        yield ledger
    finally:
        ledger.close()
