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
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from ...domain.types import ColumnType, UnsupportedType, parse_type

_WRAPPED: Final = re.compile(r"(Nullable|LowCardinality)\((.*)\)", re.DOTALL)
_FIXED: Final = re.compile(r"FixedString\([0-9]+\)")
_ENUM: Final = re.compile(r"Enum(?:8|16)\(.*\)", re.DOTALL)


class Form(Enum):
    """What a column's values are when they arrive; :mod:`.clickhouse_values` makes Arrow's of them."""

    ITSELF = auto()
    TEXT = auto()
    HEXADECIMAL = auto()
    FLAG = auto()
    DAYS = auto()
    SECONDS = auto()
    TICKS = auto()


@dataclass(frozen=True, slots=True)
class Travelling:
    """One column's way. ``selects`` holds the select expression with ``{}`` for the column's quoted name."""

    proposed: ColumnType
    selects: str
    form: Form


def travelling(type_text: str) -> Travelling | None:
    """How a column of this server type travels; None when it cannot be carried exactly."""
    bare, nullable, dictionary = _unwrapped(type_text.strip())
    if _FIXED.fullmatch(bare):
        return Travelling(ColumnType("String", nullable), "hex({})", Form.HEXADECIMAL)
    if _ENUM.fullmatch(bare):
        return Travelling(ColumnType("String", nullable), "toString({})", Form.TEXT)
    try:
        parsed = parse_type(f"Nullable({bare})" if nullable else bare)
    except UnsupportedType:
        return None
    selects, form = _way(parsed)
    if dictionary and selects == "{}":
        selects = f"CAST({{}} AS {parsed})"
    return Travelling(parsed, selects, form)


def _unwrapped(text: str) -> tuple[str, bool, bool]:
    nullable = dictionary = False
    while match := _WRAPPED.fullmatch(text):
        nullable |= match[1] == "Nullable"
        dictionary |= match[1] == "LowCardinality"
        text = match[2]
    return text, nullable, dictionary


def _way(target: ColumnType) -> tuple[str, Form]:
    match target.kind:
        case "Bool":
            return "toUInt8({})", Form.FLAG
        case "Date":
            return "toUInt16({})", Form.DAYS
        case "Date32":
            return "toInt32({})", Form.DAYS
        case "DateTime":
            return "toUInt32({})", Form.SECONDS
        case "DateTime64":
            return "reinterpretAsInt64({})", Form.TICKS
        case "UUID":
            return "toString({})", Form.TEXT
        case _:
            return "{}", Form.ITSELF
