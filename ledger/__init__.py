"""The memory: events in, events out.

``chain`` seals each stored event to the one before it; ``mapper`` turns events into stored bytes and back, by a closed
table of names; ``recorder`` says what a store must offer; ``store`` is the ledger that the decisions use, and
:func:`~dpone.ledger.store.open_ledger` opens one by its URL; ``sqlite`` is one store; ``verify`` recomputes everything.

Names below are loaded when they are first used, because the event sourcing library takes time to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .mapper import EventCodec as EventCodec
    from .recorder import LedgerIdentity as LedgerIdentity
    from .store import EventLedger as EventLedger
    from .store import open_ledger as open_ledger
    from .verify import VerifyReport as VerifyReport
    from .verify import verify_ledger as verify_ledger

_HOMES = {
    "EventCodec": "mapper",
    "EventLedger": "store",
    "LedgerIdentity": "recorder",
    "VerifyReport": "verify",
    "open_ledger": "store",
    "verify_ledger": "verify",
}
__all__ = ["EventCodec", "EventLedger", "LedgerIdentity", "VerifyReport", "open_ledger", "verify_ledger"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{home}", __name__), name)
