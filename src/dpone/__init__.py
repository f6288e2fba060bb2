"""dpone-replay: bounded full refreshes of ClickHouse tables that survive any crash.

Three rooms: :mod:`dpone.domain` decides, :mod:`dpone.ledger` remembers, :mod:`dpone.adapters` acts. For programs:
``dpone.run(manifest, …)`` and the ``dpone.Outcome`` that it answers with; nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.connections.connection import Connection, Provider
    from .adapters.program import Failure, Outcome, run
    from .domain.errors import DponeError, ErrorCode

__version__ = "0.1.0"
__all__ = ["Connection", "DponeError", "ErrorCode", "Failure", "Outcome", "Provider", "__version__", "run"]
_HOMES = {
    "Connection": ".adapters.connections.connection",
    "DponeError": ".domain.errors",
    "ErrorCode": ".domain.errors",
    "Failure": ".adapters.program.outcome",
    "Outcome": ".adapters.program.outcome",
    "Provider": ".adapters.connections.connection",
    "run": ".adapters.program.running",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
