"""CREATE TABLE from a typed definition, and why a definition cannot become a table here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...domain.limits import COLUMNS_MAX, TABLE_NAME_BYTES_MAX
from ...domain.tables import TableDefinition
from ...domain.types import UnsupportedType, parse_type
from .quoting import identifier, settings_clause, table_name

ENGINES = ("MergeTree", "ReplacingMergeTree", "SummingMergeTree", "AggregatingMergeTree")
"""Engines that need no parameters and keep their rows in parts of their own."""

_PARTITION = re.compile(
    r"(toYYYYMM|toYYYYMMDD|toYear|toMonday|toDate|toStartOf(?:Month|Quarter|Year))\((.+)\)", re.DOTALL
)
_SYNCED: dict[str, int | str] = {"fsync_after_insert": 1, "fsync_part_directory": 1}


def create_database(database: str) -> str:
    """An Atomic database keeps a table's UUID through renames, and can exchange two tables."""
    return f"CREATE DATABASE IF NOT EXISTS {identifier(database)} ENGINE = Atomic"


def create_table(database: str, name: str, definition: TableDefinition) -> str:
    """Fails on the server when the name exists. ``definition`` has passed :func:`definition_refusals`."""
    return (
        f"CREATE TABLE {table_name(database, name)} {column_list(definition)} ENGINE = {definition.engine}"
        + keys(definition)
        + settings_clause(_SYNCED)
    )


def column_list(definition: TableDefinition) -> str:
    """The columns with their types, in parentheses."""
    return "(" + ", ".join(f"{identifier(c.name)} {parse_type(c.type)}" for c in definition.columns) + ")"


def keys(definition: TableDefinition) -> str:
    """`` PARTITION BY … ORDER BY …``."""
    key = ", ".join(identifier(name) for name in definition.order_by)
    partition = _partition(definition)
    return (f" PARTITION BY {partition}" if partition else "") + (f" ORDER BY ({key})" if key else " ORDER BY tuple()")


def definition_refusals(definition: TableDefinition, table: str, engines: Sequence[str] = ENGINES) -> tuple[str, ...]:
    """One sentence for each reason why this table cannot be created."""
    refusals: list[str] = []
    names = [column.name for column in definition.columns]
    if not 1 <= len(names) <= COLUMNS_MAX:
        refusals.append(f"The target has {len(names)} columns; 1 to {COLUMNS_MAX} can be carried.")
    if len(set(names)) != len(names):
        refusals.append("The target names a column twice.")
    if len(table.encode()) > TABLE_NAME_BYTES_MAX:
        refusals.append(f"The table's name is longer than {TABLE_NAME_BYTES_MAX} bytes.")
    if definition.engine not in engines:
        refusals.append(f"The engine {definition.engine} is not one of {', '.join(engines)}.")
    return (*refusals, *_type_refusals(definition), *_key_refusals(definition))


def _type_refusals(definition: TableDefinition) -> tuple[str, ...]:
    refusals = []
    for column in definition.columns:
        try:
            parse_type(column.type)
        except UnsupportedType as error:
            refusals.append(f"Column {column.name}: {error}.")
    return tuple(refusals)


def _key_refusals(definition: TableDefinition) -> tuple[str, ...]:
    types = {column.name: column.type for column in definition.columns}
    refusals = []
    for name in definition.order_by:
        if name not in types:
            refusals.append(f"The sorting key names {name}, which is not a column.")
        elif types[name].strip().startswith("Nullable"):
            refusals.append(f"The sorting key names {name}, which is {types[name]}: a key column cannot hold NULL.")
    if definition.partition_by is None:
        return tuple(refusals)
    column = _partition_column(definition)
    if column is None:
        refusals.append("partition_by is neither a column nor toYYYYMM(column) or a similar date function of one.")
    elif types[column].strip().startswith("Nullable"):
        refusals.append(f"partition_by names {column}, which is {types[column]}: a partition key cannot hold NULL.")
    return tuple(refusals)


def _partition_column(definition: TableDefinition) -> str | None:
    text = (definition.partition_by or "").strip()
    names = {column.name for column in definition.columns}
    if text in names:
        return text
    match = _PARTITION.fullmatch(text)
    return match[2].strip() if match and match[2].strip() in names else None


def _partition(definition: TableDefinition) -> str | None:
    column = _partition_column(definition)
    if column is None:
        return None
    match = _PARTITION.fullmatch((definition.partition_by or "").strip())
    quoted = identifier(column)
    return quoted if match is None or (definition.partition_by or "").strip() == column else f"{match[1]}({quoted})"
