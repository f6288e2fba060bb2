"""Which table is it on this replica, and how is it built there.

A replicated table is known by its Keeper path, which follows it through renames and belongs to one generation only; any
other table has the id ``local:<engine>``, which is never a generation's. The digest is the embedded engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...domain.tables import Column, TableIdentity
from ..clickhouse.dialects import Dialect
from ..clickhouse.identity import definition_digest, key_columns
from ..clickhouse.quoting import literal

Rows = list[dict[str, Any]]
Query = Callable[[str], Rows]
"""Runs one statement on one replica and gives its rows, each by alias."""


def read_identities(query: Query, database: str, wanted: str, dialect: Dialect) -> dict[str, TableIdentity]:
    """The identities of a database's tables that satisfy ``wanted``, a condition on ``name``. Asks no Keeper."""
    tables = query(
        f"SELECT name, engine, sorting_key FROM system.tables WHERE database = {literal(database)} AND ({wanted})"
    )
    if not tables:
        return {}
    names = ", ".join(literal(table["name"]) for table in tables)
    of_these = f"WHERE database = {literal(database)} AND table IN ({names})"
    paths = query(f"SELECT table, zookeeper_path FROM system.replicas {of_these}")
    path_of = {row["table"]: row["zookeeper_path"] for row in paths}
    # A server of 2018 numbers no columns; it lists them in their order.
    order = "" if dialect is Dialect.V18 else " ORDER BY table, position"
    columns = _by_table(query(f"SELECT table, name, type FROM system.columns {of_these}{order}"))
    return {
        table["name"]: TableIdentity(
            path_of.get(table["name"]) or f"local:{table['engine']}",
            definition_digest(columns.get(table["name"], ()), key_columns(table["sorting_key"]), table["engine"]),
        )
        for table in tables
    }


def _by_table(rows: Iterable[dict[str, Any]]) -> dict[str, list[Column]]:
    found: dict[str, list[Column]] = {}
    for row in rows:
        found.setdefault(row["table"], []).append(Column(row["name"], row["type"]))
    return found
