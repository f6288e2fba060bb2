"""Names and texts as ClickHouse reads them, whatever characters they hold."""

from __future__ import annotations

from collections.abc import Mapping

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\b": "\\b", "\f": "\\f"}


def identifier(name: str) -> str:
    """A database, table or column name in backticks."""
    return _quoted(name, "`")


def table_name(database: str, name: str) -> str:
    """``database.name``, both quoted."""
    return f"{identifier(database)}.{identifier(name)}"


def literal(text: str) -> str:
    """A string literal in single quotes."""
    return _quoted(text, "'")


def settings_clause(settings: Mapping[str, int | str]) -> str:
    """`` SETTINGS a = 1, b = 'x'``; the names are this product's own."""
    rendered = (f"{name} = {literal(v) if isinstance(v, str) else v}" for name, v in settings.items())
    return " SETTINGS " + ", ".join(rendered)


def _quoted(text: str, quote: str) -> str:
    escapes = {**_ESCAPES, quote: "\\" + quote}
    return quote + "".join(escapes.get(character, character) for character in text) + quote
