"""Which Arrow type may fill which column: exactly the table of :mod:`dpone.domain.ports`, and nothing that the engine
would cast. Measured: for these pairs every boundary value arrives unchanged; others wrap, round or are read as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import Column
from ...domain.types import ColumnType, parse_type


def check_schema(schema: Any, columns: Sequence[Column]) -> None:
    """Raises EngineFailed unless the batch has exactly these columns, in order, in the Arrow types that carry them."""
    if tuple(schema.names) != tuple(column.name for column in columns):
        raise _refused("A batch of rows does not have the declared columns in the declared order.")
    for field, column in zip(schema, columns, strict=True):
        if str(field.type) not in arrow_names(parse_type(column.type)):
            raise _refused(f"Column {column.name} of type {column.type} was handed over as Arrow {field.type}.")


def another_schema() -> EngineFailed:
    """The error for a batch whose Arrow schema (types, nullability) is not that of the batches before it."""
    return _refused("A batch of rows has another Arrow schema than the batches before it.")


def check_nulls(batch: Any, columns: Sequence[Column]) -> None:
    """Raises EngineFailed for a NULL in a column that cannot hold one (the engine would store a default)."""
    for array, column in zip(batch.columns, columns, strict=True):
        if array.null_count and not parse_type(column.type).nullable:
            raise _refused(f"Column {column.name} of type {column.type} was handed a NULL.", ErrorCode.VALUE_REFUSED)


def arrow_names(column_type: ColumnType) -> tuple[str, ...]:
    """The accepted Arrow types, as pyarrow prints them."""
    match column_type.kind:
        case "Float32":
            return ("float",)
        case "Float64":
            return ("double",)
        case "Bool":
            return ("bool",)
        case "String":
            return ("string", "binary", "large_string", "large_binary")
        case "UUID":
            return ("string", "large_string")
        case "Date" | "Date32":
            return ("date32[day]",)
        case "DateTime":
            return ("timestamp[s, tz=UTC]",)
        case "DateTime64":
            return (f"timestamp[{_unit(column_type.precision)}, tz=UTC]",)
        case "Decimal":
            return (f"decimal128({column_type.precision}, {column_type.scale})",)
        case integer:
            return (integer.lower(),)


def _unit(digits: int) -> str:
    return "s" if digits == 0 else "ms" if digits <= 3 else "us" if digits <= 6 else "ns"


def _refused(what: str, code: ErrorCode = ErrorCode.INTERNAL) -> EngineFailed:
    return EngineFailed(code, what, safe="The live table was not touched.", next="Report this: it is a defect.")
