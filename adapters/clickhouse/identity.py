"""Which table is it, and how is it built: read from the engine's system tables, or computed from a definition."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...domain.tables import Column, TableIdentity
from ...domain.types import UnsupportedType, parse_type
from .quoting import literal

Query = Callable[[str], list[dict[str, Any]]]

_KEY_COLUMN = re.compile(r"\s*(?:`((?:[^`\\]|\\.)*)`|([A-Za-z_][A-Za-z0-9_]*))\s*(,|$)")
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b", "f": "\f"}


def definition_digest(columns: Sequence[Column], order_by: Sequence[str], engine: str) -> str:
    """``sha256:`` over the RFC 8785 form of column names, canonical types, sorting key and engine name.

    The same from a declared definition and from :func:`read_identities`.
    """
    import rfc8785

    body = {
        "columns": [[column.name, _canonical(column.type)] for column in columns],
        "engine": engine,
        "sorting_key": list(order_by),
    }
    return "sha256:" + hashlib.sha256(rfc8785.dumps(body)).hexdigest()


def read_identities(query: Query, database: str, wanted: str) -> dict[str, TableIdentity]:
    """The identities of a database's tables that satisfy ``wanted``, a condition on ``name``."""
    tables = query(
        "SELECT name, toString(uuid) AS id, engine, sorting_key FROM system.tables "
        f"WHERE database = {literal(database)} AND ({wanted})"
    )
    if not tables:
        return {}
    names = ", ".join(literal(table["name"]) for table in tables)
    columns = query(
        "SELECT table, name, type FROM system.columns "
        f"WHERE database = {literal(database)} AND table IN ({names}) ORDER BY table, position"
    )
    by_table: dict[str, list[Column]] = {}
    for column in columns:
        by_table.setdefault(column["table"], []).append(Column(column["name"], column["type"]))
    return {
        table["name"]: TableIdentity(
            table["id"],
            definition_digest(by_table.get(table["name"], ()), key_columns(table["sorting_key"]), table["engine"]),
        )
        for table in tables
    }


def key_columns(printed: str) -> tuple[str, ...]:
    """The columns of a sorting key as ClickHouse prints it; a key that is no plain list is one entry of its own."""
    names: list[str] = []
    position = 0
    text = printed[1:-1] if printed.startswith("(") and printed.endswith(")") else printed  # ``(a)``, but ``a, b``
    while position < len(text):
        match = _KEY_COLUMN.match(text, position)
        if match is None:
            return (printed,)
        names.append(_unescape(match[1]) if match[1] is not None else match[2])
        position = match.end()
    return tuple(names)


def names_like(table: str) -> re.Pattern[str]:
    """This product's names for a target: its own name, or ``__dpone_<table>_<32 hexadecimal digits>_…``."""
    return re.compile(rf"(?:{re.escape(table)}|__dpone_{re.escape(table)}_[0-9a-f]{{32}}_.*)", re.DOTALL)


def named_like(table: str, column: str = "name") -> str:
    """A condition on ``column`` that holds for every name of :func:`names_like`, and for some more."""
    return f"{column} = {literal(table)} OR startsWith({column}, {literal(f'__dpone_{table}_')})"


def matching(table: str, identities: Iterable[tuple[str, TableIdentity]]) -> dict[str, TableIdentity]:
    """Leave out the tables of a target whose name only begins like this one's."""
    pattern = names_like(table)
    return {name: identity for name, identity in identities if pattern.fullmatch(name)}


def _canonical(text: str) -> str:
    try:
        return str(parse_type(text))
    except UnsupportedType:
        return text  # somebody else's table: any stable text tells it apart


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _UNESCAPED.get(match[1], match[1]), text, flags=re.DOTALL)
