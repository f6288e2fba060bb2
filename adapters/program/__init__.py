"""dpone called from a Python program: :func:`run` does what ``dpone run`` does, and answers with an :class:`Outcome`.

``dpone.run``, ``dpone.Outcome`` and the others below are the same objects; their names and fields are stable. What a
program may inject: a provider of connections, a mapping in place of the environment, a composer that wires other ports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .outcome import Failure, Outcome
    from .running import run

__all__ = ["Failure", "Outcome", "run"]
_HOMES = {"Failure": ".outcome", "Outcome": ".outcome", "run": ".running"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
