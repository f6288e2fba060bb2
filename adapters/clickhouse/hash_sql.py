"""The typed hash of :mod:`dpone.domain.typed_hash`, as one ClickHouse expression."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.tables import Column
from ...domain.typed_hash import NULL_CELL, tag
from ...domain.types import ColumnType, parse_type
from .dialects import Dialect
from .quoting import identifier, literal

_QUIET_NAN_BITS = {"Float32": 0x7FC00000, "Float64": 0x7FF8000000000000}
_ROW_PIECES_MAX = 200  # one concat of thousands of arguments is slow to analyse; pieces are joined by another


def row_hash(columns: Sequence[Column], dialect: Dialect = Dialect.PRESENT) -> str:
    """The hash of one row, a UInt64. Raises DponeError (EVIDENCE_UNSUPPORTED) for a type that the server lacks."""
    dialect.require(columns)
    cells = [_cell(column, dialect) for column in columns]
    while len(cells) > 1:
        cells = [_concat(cells[i : i + _ROW_PIECES_MAX]) for i in range(0, len(cells), _ROW_PIECES_MAX)]
    return f"halfMD5({cells[0]})"


def table_hash(columns: Sequence[Column], dialect: Dialect = Dialect.PRESENT) -> str:
    """The sum of all rows' hashes modulo 2**64 (``sum`` of UInt64 wraps), 0 for no rows. Raises as ``row_hash``."""
    return f"sum({row_hash(columns, dialect)})"


def one_zero_one_nan(value: str, kind: str, dialect: Dialect) -> str:
    """A float's bits, in which -0.0 is 0.0 and there is one NaN; ``value`` is never NULL."""
    width = int(kind[5:])
    bits = dialect.bits(f"if({value} = 0, to{kind}(0), {value})", width)
    return f"if(isNaN({value}), toUInt{width}({_QUIET_NAN_BITS[kind]}), {bits})"


def _cell(column: Column, dialect: Dialect) -> str:
    column_type = parse_type(column.type)
    name = identifier(column.name)
    if not column_type.nullable:
        return _present(name, column_type, dialect)
    present = _present(f"assumeNotNull({name})", column_type, dialect)
    return f"if(isNull({name}), {literal(NULL_CELL.decode())}, {present})"


def _present(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    text = _text(value, column_type, dialect)
    return f"concat('{tag(column_type)}', toString(length({text})), ':', {text})"


def _text(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    match column_type.kind:
        case "String":
            return value
        case "Bool":
            return f"toString(toUInt8({value}))"
        case "Date":
            return dialect.day(value)
        case "DateTime":
            return f"toString(toUInt32({value}))"
        case "DateTime64":
            return f"toString(reinterpretAsInt64({value}))"
        case "Decimal":
            return _decimal_text(value, column_type, dialect)
        case "Float32" | "Float64":
            return f"toString({one_zero_one_nan(value, column_type.kind, dialect)})"
        case _:  # integers, Date32, UUID
            return f"toString({value})"


def _decimal_text(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    """Digits without trailing zeros, ``e``, exponent."""
    unscaled = dialect.unscaled(value, column_type)
    digits = dialect.without_trailing_zeros(unscaled)
    exponent = f"toString(toInt16(length({unscaled})) - toInt16(length({digits})) - {column_type.scale})"
    return f"if({value} = 0, '0e0', concat({digits}, 'e', {exponent}))"


def _concat(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
