"""Everything that a server of 2018 (18.16) and a present one are asked in different words.

18.16 has Ordinary databases only: no table has a UUID, two tables cannot be exchanged, a drop is always at once. An
identical block is dropped as a repetition whatever table it belonged to before, and there are no tokens to tell blocks
apart: there the server's deduplication is switched off. Its queue of distributed statements is visible in the Keeper
alone. Numeric settings travel in binary, signed ones in zigzag, which the driver does not do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...domain.ports import SwapForm
from ...domain.tables import Column
from ...domain.types import UnsupportedType, parse_type
from ..clickhouse.dialects import Dialect
from ..clickhouse.quoting import identifier, literal, table_name

ROWS_PER_BLOCK: Final = 1_048_576
"""A server cuts inserts into parts of this many rows."""

_PINNED_INSERT: Final[Mapping[str, int | str]] = {
    "insert_quorum": 0,
    "min_insert_block_size_rows": ROWS_PER_BLOCK,
    "min_insert_block_size_bytes": 256 * 1024 * 1024,
}
_PINNED_INSERT_PRESENT: Final[Mapping[str, int | str]] = {
    "async_insert": 0,
    "optimize_on_insert": 0,
    "input_format_null_as_default": 0,
    "insert_null_as_default": 0,
}
_PINNED_SCAN: Final[Mapping[str, int | str]] = {
    "max_rows_to_read": 0,
    "max_bytes_to_read": 0,
    "read_overflow_mode": "throw",
    "result_overflow_mode": "throw",
    "timeout_overflow_mode": "throw",
    "max_result_rows": 0,
    "empty_result_for_aggregation_by_empty_set": 0,
}
_PINNED_SCAN_PRESENT: Final[Mapping[str, int | str]] = {
    "aggregate_functions_null_for_empty": 0,
    "final": 0,
    "apply_deleted_mask": 1,
}


SwapNames = tuple[str, str, str, str]
"""Candidate, arm, table, predecessor."""


def settings_of_a_cluster_statement(seconds: int, *, as_text: bool) -> dict[str, int]:
    """How long the server waits for all replicas. As text a number is itself; in binary it is read as zigzag."""
    return {"distributed_ddl_task_timeout": seconds if as_text else 2 * seconds, "allow_distributed_ddl": 1}


def settings_of_an_insert(dialect: Dialect, token: str) -> dict[str, int | str]:
    """Deduplication is deliberate: a token for each block, or none at all. A block is never sent a second time."""
    if dialect is Dialect.V18:
        return {**_PINNED_INSERT, "insert_deduplicate": 0}
    deduplicating: dict[str, int | str] = {"insert_deduplicate": 1, "insert_deduplication_token": token}
    return {**_PINNED_INSERT, **_PINNED_INSERT_PRESENT, **deduplicating}


def one_insert_takes_all_blocks(dialect: Dialect) -> bool:
    """A token belongs to an INSERT, so that with tokens every block is one of its own."""
    return dialect is Dialect.V18


def settings_of_a_scan(dialect: Dialect) -> dict[str, int | str]:
    """A count is of all rows or fails; a profile's limits cannot cut it short."""
    return dict(_PINNED_SCAN) if dialect is Dialect.V18 else {**_PINNED_SCAN, **_PINNED_SCAN_PRESENT}


def create_database(dialect: Dialect, database: str, engine: str) -> str:
    """The engine is the one that the other replicas have."""
    if dialect is Dialect.V18:
        return f"CREATE DATABASE IF NOT EXISTS {identifier(database)}"
    return f"CREATE DATABASE IF NOT EXISTS {identifier(database)} ENGINE = {identifier(engine)}"


def drop_table(dialect: Dialect, database: str, name: str) -> str:
    """At once, also in the Keeper."""
    return f"DROP TABLE {table_name(database, name)}" + ("" if dialect is Dialect.V18 else " SYNC")


def swap_statement(form: SwapForm, database: str, names: SwapNames, cluster: str | None) -> str:
    """One publication statement, for one server or (``cluster``) for all of them."""
    where = f" ON CLUSTER {identifier(cluster)}" if cluster is not None else ""
    candidate, arm, table, predecessor = (table_name(database, name) for name in names)
    match form:
        case SwapForm.EXCHANGE:
            return f"EXCHANGE TABLES {candidate} AND {table}{where}"
        case SwapForm.RENAME:
            return f"RENAME TABLE {candidate} TO {arm}, {table} TO {predecessor}, {arm} TO {table}{where}"
        case SwapForm.FIRST:
            return f"RENAME TABLE {candidate} TO {arm}, {arm} TO {table}{where}"


def can_exchange(dialect: Dialect, engine: str) -> bool:
    """Only an Atomic database of a present server exchanges two tables."""
    return dialect is Dialect.PRESENT and engine == "Atomic"


def hashed(column: Column, dialect: Dialect) -> Sequence[str]:
    """What of a column goes into a hash that compares replicas of one server version with each other.

    A NULL would make the whole hash NULL: it is told apart by a part of its own.
    """
    name = identifier(column.name)
    try:
        column_type = parse_type(column.type)
    except UnsupportedType:
        return (f"toString({name})",)
    parts = (f"isNull({name})",) if column_type.nullable else ()
    value = f"assumeNotNull({name})" if column_type.nullable else name
    match column_type.kind:
        case "Decimal":
            value = f"reinterpretAsString({value})" if dialect is Dialect.V18 else value
        case "UUID":
            value = f"toString({value})"
    return (value, *parts)


def columns_of_tables(dialect: Dialect, database: str, names: Sequence[str]) -> str:
    """Rows ``table``, ``name``, ``type``, in order. 18.16 numbers no columns; one thread gives them as they are."""
    order = "" if dialect is Dialect.V18 else " ORDER BY table, position"
    listed = ", ".join(literal(name) for name in names)
    return (
        "SELECT table, name, type FROM system.columns "
        f"WHERE database = {literal(database)} AND table IN ({listed}){order}"
    )


def materialized_views_into(dialect: Dialect, database: str, table: str) -> str:
    """Rows ``database``, ``name``, ``statement``: views that may write into the table.

    18.16 tells where a view writes in its statement only; see :func:`writes_into`.
    """
    chosen = "SELECT database, name, create_table_query AS statement FROM system.tables WHERE engine = "
    if dialect is Dialect.V18:
        return f"{chosen}'MaterializedView' ORDER BY database, name"
    return (
        f"{chosen}'MaterializedView' AND target_database = {literal(database)} AND target_table = {literal(table)} "
        "ORDER BY database, name"
    )


def queue_entries(dialect: Dialect, path: str) -> str:
    """Rows ``entry`` and ``statement`` of the queue of distributed statements."""
    if dialect is Dialect.V18:
        return f"SELECT name AS entry, value AS statement FROM system.zookeeper WHERE path = {literal(path)}"
    return "SELECT DISTINCT entry, query AS statement FROM system.distributed_ddl_queue"


def queue_outcomes(dialect: Dialect, path: str, entry: str) -> str:
    """Rows ``host`` (``host:port``) and ``outcome``: what a server reported of one entry, empty while it has not."""
    if dialect is Dialect.V18:
        where = literal(f"{path}/{entry}/finished")
        return f"SELECT name AS host, value AS outcome FROM system.zookeeper WHERE path = {where}"
    return (
        "SELECT concat(host, ':', toString(port)) AS host, "
        "if(status = 'Finished', toString(exception_code), '') AS outcome "
        f"FROM system.distributed_ddl_queue WHERE entry = {literal(entry)}"
    )


def state_of_a_table(dialect: Dialect, database: str, table: str) -> str:
    """One row, if the table is there: ``engine``; who reads its inserts; who was loaded from it."""
    loaded = (
        "emptyArrayString() AS loaded_databases, emptyArrayString() AS loaded_tables"
        if dialect is Dialect.V18
        else "loading_dependent_database AS loaded_databases, loading_dependent_table AS loaded_tables"
    )
    return (
        f"SELECT engine, dependencies_database AS reader_databases, dependencies_table AS reader_tables, {loaded} "
        f"FROM system.tables WHERE database = {literal(database)} AND name = {literal(table)}"
    )
