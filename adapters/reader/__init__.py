"""The reader: a worker process that observes one table within a budget, and the parent that trusts none of its bytes.

``process`` is the parent's side, ``worker`` the program it starts, ``channel`` bounded reading and writing of pipes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .process import ProcessReader

__all__ = ["ProcessReader"]


def __getattr__(name: str) -> Any:
    if name == "ProcessReader":
        from .process import ProcessReader

        return ProcessReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
