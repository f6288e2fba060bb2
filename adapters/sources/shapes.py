"""The Arrow type that stands for each ClickHouse type (the table of :mod:`dpone.domain.ports`), and its range."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType
from .refusals import RowRefused

_EPOCH: Final = date(1970, 1, 1)
_YEAR_1900: Final = (date(1900, 1, 1) - _EPOCH).days
_YEAR_2300: Final = (date(2300, 1, 1) - _EPOCH).days
DAY_SECONDS: Final = 86_400
UNITS: Final = {0: "s", 3: "ms", 6: "us", 9: "ns"}
DIGITS: Final = {unit: digits for digits, unit in UNITS.items()}


class Refused(Exception):
    """Some value of an array does not fit; which one is found by :func:`first_refused`."""


def unit_digits(target: ColumnType) -> int:
    """Decimal digits of the Arrow unit that carries a DateTime or DateTime64: 0, 3, 6 or 9."""
    return -(-target.precision // 3) * 3


def arrow_type(target: ColumnType) -> Any:
    """The Arrow type that batches carry for a target type."""
    if target.is_integer:
        return getattr(pa, target.kind.lower())()
    match target.kind:
        case "Float32":
            return pa.float32()
        case "Float64":
            return pa.float64()
        case "Bool":
            return pa.bool_()
        case "Date" | "Date32":
            return pa.date32()
        case "DateTime" | "DateTime64":
            return pa.timestamp(UNITS[unit_digits(target)], "UTC")
        case "Decimal":
            return pa.decimal128(target.precision, target.scale)
        case _:
            return pa.string()  # String and UUID; a String of bytes may be binary instead


def value_range(target: ColumnType) -> tuple[int, int] | None:
    """Smallest and largest value, in days for dates and in the Arrow unit for times. None: the Arrow type bounds it.

    Source: ClickHouse's documentation of Date (16 bits of days), Date32, DateTime (32 bits of seconds), DateTime64.
    """
    match target.kind:
        case "Date":
            return 0, 2**16 - 1
        case "Date32":
            return _YEAR_1900, _YEAR_2300 - 1
        case "DateTime":
            return 0, 2**32 - 1
        case "DateTime64":
            ticks = 10 ** unit_digits(target)
            last = min(_YEAR_2300 * DAY_SECONDS * ticks - 1, 2**63 - 1)
            return _YEAR_1900 * DAY_SECONDS * ticks, last
        case _:
            return None


def check_range(values: Any, target: ColumnType) -> Any:
    """The same dates or times. Raises Refused when one lies outside its type's range."""
    bounds = value_range(target)
    if bounds is None or len(values) == 0:
        return values
    numbers = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is not None and not (bounds[0] <= ends["min"] and ends["max"] <= bounds[1]):
        raise Refused("outside the range of the type")
    return values


def first_refused(convert: Any, values: Any) -> RowRefused:
    """The first value that ``convert`` refuses, found by halving. At least one must be refused."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if _accepts(convert, values.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    try:
        convert(values.slice(low, 1))
    except Refused as refused:
        return RowRefused(low, str(refused))
    except pa.ArrowException:
        return RowRefused(low, "not a value that the type holds exactly")
    raise AssertionError("a conversion refused a whole array and none of its values")


def _accepts(convert: Any, values: Any) -> bool:
    try:
        convert(values)
    except (Refused, pa.ArrowException):
        return False
    return True
