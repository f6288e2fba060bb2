"""Arrow values of any type to a target type: exactly, or refused with the first row that does not fit.

Numbers narrow and widen when the value stays the same; NaN is a value and never NULL; a fraction of a second is never
cut; a zone changes how an instant is shown and never the instant. Timestamps without a zone are local time of the
target type's zone, UTC when it has none. Texts go the way of :mod:`.texts`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType
from .shapes import DIGITS, UNITS, Refused, arrow_type, check_range, first_refused, unit_digits
from .texts import from_texts
from .times import in_zone


def proposed_type(kind: Any) -> str | None:
    """The ClickHouse type (without Nullable) that holds every value of an Arrow type exactly; None: none does."""
    types = pa.types
    if types.is_dictionary(kind):
        return proposed_type(kind.value_type)
    if types.is_integer(kind):
        return f"{'U' if types.is_unsigned_integer(kind) else ''}Int{kind.bit_width}"
    if types.is_floating(kind):
        return "Float64" if types.is_float64(kind) else "Float32"
    if types.is_boolean(kind):
        return "Bool"
    if _is_text(kind) or is_bytes(kind):
        return "String"
    if types.is_date(kind):
        return "Date32"
    if types.is_timestamp(kind):
        digits = DIGITS[kind.unit]
        return f"DateTime64({digits}, 'UTC')"
    if types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return f"Decimal({kind.precision}, {kind.scale})"
    return None


def from_arrow(values: Any, target: ColumnType) -> Any:
    """An Arrow array as the target's Arrow type. Raises RowRefused. NULL stays NULL."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_float16(values.type):
        values = pc.cast(values, pa.float32())
    if _is_text(values.type):
        return from_texts(values.cast(pa.string()), target)
    if values.type == arrow_type(target) and target.kind not in ("Date", "Date32", "DateTime", "DateTime64"):
        return values
    convert = partial(_convert, target=target)
    try:
        return convert(values)
    except (Refused, pa.ArrowException):
        raise first_refused(convert, values) from None


def _convert(values: Any, target: ColumnType) -> Any:
    kind = values.type
    if pa.types.is_null(kind):
        return pc.cast(values, arrow_type(target))
    if target.is_integer or target.kind in ("Float32", "Float64"):
        return _number(values, target)
    match target.kind:
        case "String" if is_bytes(kind):
            return pc.cast(values, pa.binary())
        case "UUID" if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
            return _uuid(values)
        case "Bool" if pa.types.is_integer(kind):
            return _flag(values)
        case "Date" | "Date32" if pa.types.is_date(kind):
            return check_range(_day(values), target)
        case "DateTime" | "DateTime64" if pa.types.is_timestamp(kind):
            return check_range(_instant(values, target), target)
        case "Decimal" if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
            return _decimal(values, target)
        case _:
            raise Refused("a value of another kind")


def _number(values: Any, target: ColumnType) -> Any:
    kind, wanted = values.type, arrow_type(target)
    if pa.types.is_floating(kind) and pa.types.is_floating(wanted):
        result = pc.cast(values, wanted, safe=False)
        same = pc.or_(pc.equal(pc.cast(result, kind, safe=False), values), pc.is_nan(values))
        if kind.bit_width > wanted.bit_width and pc.all(same).as_py() is False:
            raise Refused("a number that the type would round")
        return result
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pc.cast(values, wanted)
    raise Refused("a value that is not a number")


def _flag(values: Any) -> Any:
    one, zero = pc.equal(values, 1), pc.equal(values, 0)
    if pc.all(pc.or_(one, zero)).as_py() is False:
        raise Refused("neither 0 nor 1")
    return one


def _day(values: Any) -> Any:
    if pa.types.is_date64(values.type):
        return pc.cast(values, pa.date32())
    return values


def _instant(values: Any, target: ColumnType) -> Any:
    digits, wanted = DIGITS[values.type.unit], unit_digits(target)
    ticks = values.view(pa.int64())
    if digits > target.precision:
        _require_multiple(ticks, 10 ** (digits - target.precision))
    if values.type.tz is None and target.zone not in (None, "UTC", "Etc/UTC"):
        ticks = _localised(ticks, digits, target)
    factor = 10 ** abs(wanted - digits)
    scaled = pc.multiply_checked(ticks, factor) if wanted >= digits else pc.divide(ticks, factor)
    return scaled.view(pa.timestamp(UNITS[wanted], "UTC"))


def _require_multiple(ticks: Any, step: int) -> None:
    if pc.all(pc.equal(pc.multiply(pc.divide(ticks, step), step), ticks)).as_py() is False:
        raise Refused("a fraction of a second that the type would cut")


def _localised(ticks: Any, digits: int, target: ColumnType) -> Any:
    step = 10**digits
    seconds = pc.divide(ticks, step)  # towards zero: one less for a fraction before 1970
    early = pc.less(ticks, pc.multiply(seconds, step))
    seconds = pc.subtract(seconds, pc.cast(early, pa.int64()))
    within = pc.subtract(ticks, pc.multiply(seconds, step))
    shifted = in_zone(seconds.view(pa.timestamp("s")), target.zone).view(pa.int64())
    return pc.add(pc.multiply(shifted, step), within)


def _decimal(values: Any, target: ColumnType) -> Any:
    try:
        if pa.types.is_integer(values.type):
            values = pc.cast(values, pa.decimal128(38, 0))
        return pc.cast(values, arrow_type(target))
    except pa.ArrowInvalid:
        raise Refused("more digits than the type holds") from None


def _uuid(values: Any) -> Any:
    texts = [None if raw is None else raw.hex() for raw in values.to_pylist()]
    return pa.array([t and f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}" for t in texts], pa.string())


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: Any) -> bool:
    """Whether an Arrow type holds bytes that need not be text."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )
