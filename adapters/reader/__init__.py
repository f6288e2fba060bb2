"""The reader: a worker process that observes one table within a budget, and the parent that trusts none of its bytes.

``parent`` is the parent's side, ``channel`` bounded reading and writing of pipes, ``child`` a worker's side of them.
What a worker does is a place's business: ``process`` and ``worker`` for the engine's folder, ``servers`` and
``server_worker`` for a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .process import ProcessReader
    from .servers import ServerReader

__all__ = ["ProcessReader", "ServerReader"]


def __getattr__(name: str) -> Any:
    if name == "ProcessReader":
        from .process import ProcessReader

        return ProcessReader
    if name == "ServerReader":
        from .servers import ServerReader

        return ServerReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
