"""How each PostgreSQL type travels: what is selected, how it arrives, and which column type holds it.

==============================  ===========  ===========================================================
PostgreSQL                      arrives as   proposed
==============================  ===========  ===========================================================
smallint, integer, bigint       itself       Int16, Int32, Int64
real, double precision          itself       Float32, Float64
boolean                         itself       Bool
numeric(p, s), p ≤ 38           text         Decimal(p, s); NaN and infinities are refused
numeric                         text         none: a type must be declared
text, varchar, char(n), enums   text         String; the blanks that fill a char(n) are left out
bytea                           bytes        String
uuid                            text         UUID
date                            days         Date32; infinities are refused
timestamp                       microseconds DateTime64(6): taken as UTC; infinities are refused
timestamptz                     microseconds DateTime64(6, 'UTC'); infinities are refused
a domain over one of these      as its base  as its base
==============================  ===========  ===========================================================

Nullable(…) unless a table's column is NOT NULL. Everything else is refused with the column's name; a query may turn
it into one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from ...domain.types import ColumnType
from .arrows import from_arrow
from .shapes import arrow_type
from .texts import from_texts

_PLAIN: Final = {
    "smallint": ColumnType("Int16"),
    "integer": ColumnType("Int32"),
    "bigint": ColumnType("Int64"),
    "real": ColumnType("Float32"),
    "double precision": ColumnType("Float64"),
    "boolean": ColumnType("Bool"),
    "date": ColumnType("Date32"),
}
_TEXT: Final = re.compile(r"text|name|(?:character varying|character|bpchar)(?:\([0-9]+\))?")
_NUMERIC: Final = re.compile(r"numeric(?:\(([0-9]+),(-?[0-9]+)\))?")
_TIMESTAMP: Final = re.compile(r"timestamp(?:\([0-6]\))? (with|without) time zone")


@dataclass(frozen=True, slots=True)
class Travelling:
    """One column's way. ``proposed`` is None when only a declared type can hold it; ``arrives`` is the Arrow type
    that the driver must deliver; ``decode`` turns that into ``kind``, the type of the source's own values."""

    proposed: ColumnType | None
    selects: str
    arrives: Any
    decode: Callable[[Any], Any]
    kind: Any


def travelling(type_name: str, is_enum: bool = False) -> Travelling | None:
    """How a column of this type (as ``format_type`` prints it) travels; None when it cannot be carried exactly."""
    if type_name in _PLAIN:
        return _as_it_is(_PLAIN[type_name], "{}")
    if is_enum or _TEXT.fullmatch(type_name):
        return _as_it_is(ColumnType("String"), "({})::text")
    if type_name == "uuid":
        return _as_it_is(ColumnType("UUID"), "({})::text")
    if type_name == "bytea":
        return Travelling(ColumnType("String"), "{}", pa.binary(), _itself, pa.binary())
    if match := _TIMESTAMP.fullmatch(type_name):
        zone = "UTC" if match[1] == "with" else None
        kind = pa.timestamp("us", zone)
        return Travelling(ColumnType("DateTime64", precision=6, zone=zone), "{}", kind, _itself, kind)
    if match := _NUMERIC.fullmatch(type_name):
        return _numeric(match)
    return None


def _as_it_is(proposed: ColumnType, selects: str) -> Travelling:
    kind = arrow_type(proposed)
    return Travelling(proposed, selects, kind, _itself, kind)


def _numeric(match: re.Match[str]) -> Travelling | None:
    if match[1] is None:
        return Travelling(None, "({})::text", pa.string(), _itself, pa.string())
    precision, scale = int(match[1]), int(match[2])
    if not 0 <= scale <= precision <= 38:
        return None
    exact = ColumnType("Decimal", precision=precision, scale=scale)
    return Travelling(exact, "({})::text", pa.string(), partial(from_texts, target=exact), arrow_type(exact))


def _itself(values: Any) -> Any:
    return values


def from_server(arrived: tuple[Travelling, Any], target: ColumnType) -> Any:
    """A column as it arrived, as the target's Arrow type. Raises RowRefused."""
    way, raw = arrived
    return from_arrow(way.decode(raw), target)
