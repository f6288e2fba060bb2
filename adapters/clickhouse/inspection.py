"""What stands in the way of publishing to a target here, as sentences for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...domain.tables import Column, TargetRef
from ...domain.types import parse_type
from .definitions import ENGINES
from .quoting import literal

Query = Callable[[str], list[dict[str, Any]]]


def target_refusals(query: Query, target: TargetRef) -> tuple[str, ...]:
    """Why the target, as it exists now, cannot be replaced by a swap. Empty when there is no such table yet."""
    databases = query(f"SELECT engine FROM system.databases WHERE name = {literal(target.database)}")
    if not databases:
        return ()
    if databases[0]["engine"] != "Atomic":
        kind = databases[0]["engine"]
        return (f"The database {target.database} has the engine {kind}; only Atomic databases can exchange tables.",)
    tables = query(
        "SELECT engine, dependencies_database, dependencies_table, loading_dependent_database, loading_dependent_table "
        "FROM system.tables "
        f"WHERE database = {literal(target.database)} AND name = {literal(target.table)}"
    )
    if not tables:
        return ()
    kind = _kind_refusal(target, tables[0]["engine"])
    return (kind,) if kind else _dependents(query, target, tables[0])


def zone_refusals(query: Query, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns in a time zone that the engine does not know; it would say so only when the table is created."""
    zones = {column.name: zone for column in columns if (zone := parse_type(column.type).zone) not in (None, "UTC")}
    if not zones:
        return ()
    names = ", ".join(literal(zone) for zone in sorted(set(zones.values())))
    known = {row["time_zone"] for row in query(f"SELECT time_zone FROM system.time_zones WHERE time_zone IN ({names})")}
    return tuple(
        f"Column {name} is in the time zone {zone!r}, which the engine does not know."
        for name, zone in zones.items()
        if zone not in known
    )


def _kind_refusal(target: TargetRef, engine: str) -> str | None:
    if engine in ENGINES:
        return None
    match engine:
        case "View" | "MaterializedView" | "LiveView" | "WindowView":
            return f"{target} is a view; only a table of the MergeTree family can be replaced."
        case "Dictionary":
            return f"{target} is a dictionary; only a table of the MergeTree family can be replaced."
        case other:
            return f"{target} has the engine {other}; only {', '.join(ENGINES)} can be replaced."


def _dependents(query: Query, target: TargetRef, row: dict[str, Any]) -> tuple[str, ...]:
    """Plain views read by name and survive a swap; what is bound to the table itself does not."""
    loaded = _paired(row["loading_dependent_database"], row["loading_dependent_table"])
    readers = _paired(row["dependencies_database"], row["dependencies_table"])
    writers = query(
        "SELECT database, name FROM system.tables WHERE engine = 'MaterializedView' "
        f"AND target_database = {literal(target.database)} AND target_table = {literal(target.table)} "
        "ORDER BY database, name"
    )
    sentences = (
        (loaded, "loaded from it, and would keep showing the old rows"),
        (readers, "fed by inserts into it, and would silently stop or miss the new rows"),
        (
            [f"{w['database']}.{w['name']}" for w in writers],
            "writing into it, and its rows would be lost with each refresh",
        ),
    )
    return tuple(f"{target} has dependents that a swap breaks: {', '.join(n)} ({why})." for n, why in sentences if n)


def _paired(databases: list[str], tables: list[str]) -> list[str]:
    return sorted(f"{database}.{table}" for database, table in zip(databases, tables, strict=True))
