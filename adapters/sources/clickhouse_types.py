"""How each ClickHouse type travels from a server: what is selected, how it arrives, and which column type holds it.

==========================  =======================================  ==========================
ClickHouse                  arrives as                               proposed
==========================  =======================================  ==========================
Int8…Int64, UInt8…UInt64    itself                                   the same
Float32, Float64            itself                                   the same
Bool                        UInt8                                    Bool
String                      bytes                                    String
FixedString(n)              bytes in hexadecimal                     String: all n bytes
Enum8, Enum16               its name                                 String
Date, Date32                days                                     the same
DateTime[('zone')]          seconds                                  the same
DateTime64(p[, 'zone'])     ticks                                    the same
Decimal(p, s), p ≤ 38       itself                                   the same
UUID                        text                                     UUID
Nullable(T)                 T with NULLs                             Nullable(…)
LowCardinality(T)           T                                        as T
==========================  =======================================  ==========================

Everything else is refused with the column's name; a query may turn it into one of these. Integers instead of dates
keep the server's and the driver's time zones out; hexadecimal keeps the NUL bytes at a FixedString's end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType, UnsupportedType, parse_type
from .arrows import from_arrow, is_bytes
from .refusals import RowRefused
from .shapes import UNITS, Refused, arrow_type, first_refused, unit_digits

_WRAPPED: Final = re.compile(r"(Nullable|LowCardinality)\((.*)\)", re.DOTALL)
_FIXED: Final = re.compile(r"FixedString\([0-9]+\)")
_ENUM: Final = re.compile(r"Enum(?:8|16)\(.*\)", re.DOTALL)

Decode = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Travelling:
    """One column's way. ``selects`` holds the select expression with ``{}`` for the column's quoted name; ``decode``
    turns what the driver yields into ``kind``, the Arrow type of the source's own values."""

    proposed: ColumnType
    selects: str
    decode: Decode
    kind: Any


def travelling(type_text: str) -> Travelling | None:
    """How a column of this server type travels; None when it cannot be carried exactly."""
    bare, nullable, dictionary = _unwrapped(type_text.strip())
    if _FIXED.fullmatch(bare):
        return Travelling(ColumnType("String", nullable), "hex({})", _from_hex, pa.binary())
    if _ENUM.fullmatch(bare):
        return Travelling(ColumnType("String", nullable), "toString({})", _text, pa.string())
    try:
        parsed = parse_type(f"Nullable({bare})" if nullable else bare)
    except UnsupportedType:
        return None
    selects, decode = _way(parsed)
    if dictionary and selects == "{}":
        selects = f"CAST({{}} AS {parsed})"
    return Travelling(parsed, selects, decode, pa.binary() if parsed.kind == "String" else arrow_type(parsed))


def _unwrapped(text: str) -> tuple[str, bool, bool]:
    nullable = dictionary = False
    while match := _WRAPPED.fullmatch(text):
        nullable |= match[1] == "Nullable"
        dictionary |= match[1] == "LowCardinality"
        text = match[2]
    return text, nullable, dictionary


def _way(target: ColumnType) -> tuple[str, Decode]:
    match target.kind:
        case "Bool":
            return "toUInt8({})", partial(pc.not_equal, pa.scalar(0, pa.uint8()))
        case "Date":
            return "toUInt16({})", _days
        case "Date32":
            return "toInt32({})", _days
        case "DateTime":
            return "toUInt32({})", _seconds
        case "DateTime64":
            return "reinterpretAsInt64({})", partial(_ticks, target=target)
        case "UUID":
            return "toString({})", _text
        case _:
            return "{}", _itself


def _itself(values: Any) -> Any:
    return values


def _days(values: Any) -> Any:
    return pc.cast(values, pa.int32()).view(pa.date32())


def _seconds(values: Any) -> Any:
    return pc.cast(values, pa.int64()).view(pa.timestamp("s", "UTC"))


def _ticks(values: Any, target: ColumnType) -> Any:
    """From ticks of any number of digits to Arrow's next finer unit. Raises RowRefused where 64 bits do not do."""
    digits = unit_digits(target)
    if digits > target.precision:
        scale = partial(_scaled, factor=10 ** (digits - target.precision))
        try:
            values = scale(values)
        except Refused:
            raise first_refused(scale, values) from None
    return values.view(pa.timestamp(UNITS[digits], "UTC"))


def _scaled(values: Any, factor: int) -> Any:
    try:
        return pc.multiply_checked(values, pa.scalar(factor, pa.int64()))
    except pa.ArrowInvalid:
        raise Refused("outside the range of the type") from None


def _from_hex(values: Any) -> Any:
    return pa.array(
        [None if text is None else bytes.fromhex(text.decode()) for text in values.to_pylist()], pa.binary()
    )


def from_server(arrived: tuple[Travelling, Any], target: ColumnType) -> Any:
    """A column as it arrived, as the target's Arrow type. Raises RowRefused.

    As :func:`.arrows.from_arrow`; bytes that are declared as another type are read as text, which must be UTF-8.
    """
    way, raw = arrived
    values = way.decode(raw)
    if is_bytes(values.type) and target.kind != "String":
        values = _text(values)
    return from_arrow(values, target)


def _text(values: Any) -> Any:
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        found: RowRefused = first_refused(partial(pc.cast, target_type=pa.string()), values)
        raise RowRefused(found.index, "not text in UTF-8") from None
