"""The table that a load will create: from declared columns, or from what the typed source and the live table say."""

from __future__ import annotations

from ...domain.capsule import schema_digest
from ...domain.errors import DponeError, ErrorCode
from ...domain.identity import OperationKey
from ...domain.names import name_problem
from ...domain.ports import Source
from ...domain.process import Process, SchemaChange
from ...domain.slot import Live
from ...domain.tables import Column, TableDefinition
from ...domain.types import parse_type


def resolve_definition(
    process: Process, key: OperationKey, source: Source, live: Live | None
) -> tuple[TableDefinition, str]:
    """The candidate's definition and the digest of the source's own columns. Reads no row.

    Raises DponeError when a name is too long, the source does not match, or an undeclared schema changed.
    """
    problem = name_problem(key.table)
    if problem is not None:
        raise _unsupported(problem)
    described = source.describe()
    columns = process.sink.columns
    if columns is None:
        columns = _undeclared(described, process.sink.schema_change, live)
    _check_keys(columns, process)
    sink = process.sink
    definition = TableDefinition(columns, sink.engine, sink.order_by, sink.partition_by)
    return definition, schema_digest(described)


def _undeclared(described: tuple[Column, ...], change: SchemaChange, live: Live | None) -> tuple[Column, ...]:
    if live is None or described == live.definition.columns or change is SchemaChange.FOLLOW:
        return described
    before = {column.name: column.type for column in live.definition.columns}
    now = {column.name: column.type for column in described}
    added = sorted(now.keys() - before.keys())
    removed = sorted(before.keys() - now.keys())
    retyped = sorted(name for name in now.keys() & before.keys() if now[name] != before[name])
    if change is SchemaChange.ADD and not removed and not retyped:
        known = tuple(column for column in live.definition.columns)
        return known + tuple(column for column in described if column.name not in before)
    if not added and not removed and not retyped:
        return live.definition.columns  # the same columns in another order: the live order holds
    named = "; ".join(
        f"{what}: {', '.join(names)}"
        for what, names in (("added", added), ("removed", removed), ("other type", retyped))
        if names
    )
    raise DponeError(
        ErrorCode.SCHEMA_CHANGED,
        f"The source's columns differ from the live table's ({named}).",
        safe="Nothing was read or changed.",
        next="Declare sink.columns, or set sink.schema_change to add or follow.",
    )


def _check_keys(columns: tuple[Column, ...], process: Process) -> None:
    types = {column.name: parse_type(column.type) for column in columns}
    for name in process.sink.order_by:
        if name not in types:
            raise _unsupported(f"order_by names the column {name!r}, which the table does not have.")
        if types[name].nullable:
            raise _unsupported(f"order_by names the column {name!r}, which may be NULL: a sorting key cannot be.")
    checks = process.quality.acceptance
    for name in (*checks.null_counts, *checks.distinct_counts):
        if name not in types:
            raise _unsupported(f"acceptance.checks names the column {name!r}, which the table does not have.")


def _unsupported(what: str) -> DponeError:
    return DponeError(ErrorCode.EVIDENCE_UNSUPPORTED, what, safe="Nothing was read or changed.", exit_code=2)
