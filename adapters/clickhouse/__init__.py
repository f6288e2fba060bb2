"""ClickHouse as a target: the engine in process, and the SQL that every route shares.

Names, hashes and observations are built as text in pure modules (``quoting``, ``hash_sql``, ``observation_sql``,
``identity``); ``embedded`` runs them in process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .embedded import EmbeddedPlatform
    from .identity import definition_digest

__all__ = ["EmbeddedPlatform", "definition_digest"]


def __getattr__(name: str) -> Any:
    match name:
        case "EmbeddedPlatform":
            from .embedded import EmbeddedPlatform

            return EmbeddedPlatform
        case "definition_digest":
            from .identity import definition_digest

            return definition_digest
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
