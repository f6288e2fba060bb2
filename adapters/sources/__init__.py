"""Where rows come from: one file per source type, each a :class:`~dpone.domain.ports.Source`.

:func:`open_source` picks the class by the manifest's ``source.type``; ``registry`` holds the table, so that a new
source is one file and one line there. The other modules are shared by the sources: ``files`` opens a file once and
notices when it changes, ``unpacking`` decompresses within a bound, ``texts``, ``times`` and ``arrows`` turn values
into the target's types exactly or refuse, ``observing`` and ``row_hash`` describe the rows that were yielded,
``reading`` ties them into one read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry import SourceRequest, open_source

__all__ = ["SourceRequest", "open_source"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".registry", __name__), name)
