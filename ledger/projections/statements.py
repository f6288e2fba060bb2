"""The SQL that SQLite and PostgreSQL share, built from the tables' definition and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .folding import RowChange
from .tables import ProjectedTable, Row


def insert(table: ProjectedTable, placeholder: str, prefix: str = "") -> str:
    """Insert a row, or put it in the place of the one with its key."""
    names, key = table.names, table.key.name
    values = ", ".join([placeholder] * len(names))
    renewed = ", ".join(f'"{name}" = excluded."{name}"' for name in names if name != key)
    return (
        f'INSERT INTO {prefix}"{table.name}" ({_listed(names)}) VALUES ({values}) '
        f'ON CONFLICT ("{key}") DO UPDATE SET {renewed}'
    )


def page(table: ProjectedTable, placeholder: str, prefix: str = "") -> str:
    """The next rows after a key, in the order of the keys: parameters are that key and how many."""
    key = table.key.name
    return (
        f'SELECT {_listed(table.names)} FROM {prefix}"{table.name}" '
        f'WHERE "{key}" > {placeholder} ORDER BY "{key}" LIMIT {placeholder}'
    )


def first_key(table: ProjectedTable) -> str | int:
    """What is below every key."""
    return "" if table.key.kind == "text" else 0


def last_rows(changes: Iterable[RowChange]) -> list[tuple[ProjectedTable, Collection[Row]]]:
    """By table, each key's last row: what several events of one batch made of it in between is never seen."""
    found: dict[str, tuple[ProjectedTable, dict[object, Row]]] = {}
    for change in changes:
        found.setdefault(change.table.name, (change.table, {}))[1][change.row[0]] = change.row
    return [(table, rows.values()) for table, rows in found.values()]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
