"""Counting a table: the statements, and how their replies become an observation.

One definition, whatever a server's settings are. Distinct counts leave NULL out; -0.0 and 0.0 are one value; all NaNs
are one value; an instant counts once, however its zone shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ...domain.limits import COUNT_MAX, DISTINCT_VALUES_MAX
from ...domain.tables import Column, Metrics, Observation
from ...domain.typed_hash import format_hash
from ...domain.types import parse_type
from .dialects import Dialect
from .hash_sql import one_zero_one_nan, table_hash
from .quoting import identifier, settings_clause, table_name

Rows = list[dict[str, Any]]
Query = Callable[[str], Rows]
"""Runs one statement and gives its rows, each by alias."""

SET_SIZE_LIMIT_EXCEEDED = 191
"""Engine code: a column has more than DISTINCT_VALUES_MAX distinct values."""

_DISTINCT_LIMIT: dict[str, int | str] = {
    "max_rows_in_distinct": DISTINCT_VALUES_MAX,
    "distinct_overflow_mode": "throw",
}


class ReplyMalformed(ValueError):
    """A reply lacks a row or an alias, or holds something that is no count."""


def observe(
    query: Query,
    database: str,
    table: str,
    columns: Sequence[Column],
    metrics: Metrics,
    dialect: Dialect = Dialect.PRESENT,
) -> Observation:
    """Count with ``query``. Exact, and bounded in memory: more distinct values than the limit end in an engine error.

    Raises ReplyMalformed; DponeError (EVIDENCE_UNSUPPORTED) when a hash needs a type that the server does not have.

    A table of at most DISTINCT_VALUES_MAX rows cannot exceed the limit, so one scan counts everything. A larger one is
    counted column by column through DISTINCT, which stops at the limit.
    """
    source, pinned = table_name(database, table), settings_clause(dialect.pinned)
    rows = _only(query(f"SELECT count() AS row_count FROM {source}{pinned}"), {"row_count"})
    row_count = _count(rows["row_count"])
    inline = metrics.distinct_counts if row_count <= DISTINCT_VALUES_MAX else ()
    by_name = {column.name: column for column in columns}
    aliases = _aggregates(by_name, columns, metrics, inline, dialect)
    selected = ", ".join(f"{expression} AS {alias}" for alias, expression in aliases.items())
    reply = _only(query(f"SELECT {selected} FROM {source}{pinned}"), set(aliases))
    distinct = {name: _count(reply[f"distinct_{i}"]) for i, name in enumerate(inline)}
    for name in metrics.distinct_counts[len(inline) :]:
        statement = _distinct_statement(source, by_name[name], dialect)
        distinct[name] = _count(_only(query(statement), {"distinct_0"})["distinct_0"])
    row_count = _count(reply["row_count"])
    return Observation(
        row_count=row_count,
        null_counts={name: _count(reply[f"null_{i}"]) for i, name in enumerate(metrics.null_counts)},
        distinct_counts=distinct,
        typed_hash=format_hash(row_count, _hash(reply["hash"])) if metrics.typed_hash else None,
    )


def rows_from_json(lines: bytes) -> Rows:
    """The rows of a ``JSONEachRow`` reply; names that are no UTF-8 are shown with a replacement character."""
    return [json.loads(line) for line in lines.decode("utf-8", "replace").split("\n") if line]


def _aggregates(
    by_name: dict[str, Column], columns: Sequence[Column], metrics: Metrics, inline: Sequence[str], dialect: Dialect
) -> dict[str, str]:
    aggregates = {"row_count": "count()"}
    for i, name in enumerate(metrics.null_counts):
        aggregates[f"null_{i}"] = f"countIf(isNull({identifier(by_name[name].name)}))"
    for i, name in enumerate(inline):
        aggregates[f"distinct_{i}"] = _distinct(by_name[name], dialect)
    if metrics.typed_hash:
        aggregates["hash"] = table_hash(columns, dialect)
    return aggregates


def _distinct(column: Column, dialect: Dialect) -> str:
    """Only of values that are there: an old server's uniqExact of nothing but NULLs is NULL."""
    value, name = _comparable(column, dialect), identifier(column.name)
    if not parse_type(column.type).nullable:
        return f"uniqExact({value})"
    return f"uniqExactIf({f'assumeNotNull({value})' if value == name else value}, isNotNull({name}))"


def _distinct_statement(source: str, column: Column, dialect: Dialect) -> str:
    """Strings are counted by their 128-bit hash, as uniqExact does: a set of long texts would not be bounded."""
    value = _comparable(column, dialect)
    if parse_type(column.type).kind == "String":
        value = f"sipHash128({value})"
    inner = f"SELECT DISTINCT {value} AS value FROM {source} WHERE isNotNull({identifier(column.name)})"
    return f"SELECT count() AS distinct_0 FROM ({inner}){settings_clause({**dialect.pinned, **_DISTINCT_LIMIT})}"


def _comparable(column: Column, dialect: Dialect) -> str:
    """What is equal exactly when two values are one; of no meaning where the column is NULL."""
    column_type = parse_type(column.type)
    name = identifier(column.name)
    if column_type.kind not in ("Float32", "Float64"):
        return name
    present = f"assumeNotNull({name})" if column_type.nullable else name
    return one_zero_one_nan(present, column_type.kind, dialect)


def _only(rows: Rows, aliases: set[str]) -> dict[str, Any]:
    if len(rows) != 1 or set(rows[0]) != aliases:
        raise ReplyMalformed("The engine's reply does not have exactly the row and columns that were asked for.")
    return rows[0]


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        raise ReplyMalformed("The engine's reply holds something that is no count.")
    return value


def _hash(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise ReplyMalformed("The engine's reply holds something that is no hash.")
    return value
