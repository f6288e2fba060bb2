"""Text to DateTime and DateTime64.

Form: ``YYYY-MM-DD hh:mm:ss`` or with ``T``, then a fraction and an offset (``Z`` or ``±hh:mm``), each optional. Without
an offset it is local time of the target type's zone, UTC when it has none; a local time that its zone skips or repeats
names no single instant and is refused. A fraction must fit the type's digits; only zeros may follow them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType
from .shapes import UNITS, Refused, check_range, unit_digits

_FORM = (
    r"^(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[ T](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    r"(?P<offset>Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?$"
)
_WITH_Z = 20  # characters of 2013-01-01T10:00:00Z; no other form that Arrow reads with an offset has this length
_NAIVE = 19  # characters of 2013-01-01T10:00:00; no other form that Arrow reads without one has this length


def instants(texts: Any, target: ColumnType) -> Any:
    """Timestamps in UTC, in the Arrow unit of the target. Raises Refused."""
    seconds = _fast(texts, target)
    if seconds is None:
        return _slow(texts, target)
    if target.precision == 0:
        return check_range(seconds, target)
    return check_range(_rescaled(seconds, target), target)


def _fast(texts: Any, target: ColumnType) -> Any:
    """All of one plain form: Arrow's own parser, which is strict for these lengths. None: look closer."""
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    if lengths["min"] != lengths["max"]:
        return None
    try:
        if lengths["min"] == _WITH_Z:
            return pc.cast(texts, pa.timestamp("s", "UTC"))
        if lengths["min"] == _NAIVE:
            return in_zone(pc.cast(texts, pa.timestamp("s")), target.zone)
    except pa.ArrowInvalid:
        return None
    return None


def _slow(texts: Any, target: ColumnType) -> Any:
    parts = pc.extract_regex(texts, pattern=_FORM)
    if parts.null_count != texts.null_count:
        raise Refused("not a time YYYY-MM-DD hh:mm:ss")
    day, time, fraction, offset = (pc.struct_field(parts, name) for name in ("day", "time", "fraction", "offset"))
    try:
        stamps = pc.cast(pc.binary_join_element_wise(day, time, " "), pa.timestamp("s"))
    except pa.ArrowInvalid:
        raise Refused("no such day or time of day") from None
    naive = pc.equal(offset, "")
    local = in_zone(pc.if_else(naive, stamps, None), target.zone)
    fixed = pc.subtract(pc.cast(stamps, pa.int64()), _offset_seconds(offset))
    seconds = pc.if_else(naive, pc.cast(local, pa.int64()), fixed)
    return check_range(_joined(seconds, fraction, target), target)


def in_zone(stamps: Any, zone: str | None) -> Any:
    if zone is None or zone in ("UTC", "Etc/UTC"):
        return pc.cast(stamps, pa.timestamp("s", "UTC"))
    try:
        local = pc.assume_timezone(stamps, timezone=zone, ambiguous="raise", nonexistent="raise")
    except pa.ArrowInvalid:
        raise Refused("no single instant in the type's time zone; give it an offset") from None
    return pc.cast(local, pa.timestamp("s", "UTC"))


def _offset_seconds(offset: Any) -> Any:
    clock = pc.replace_substring_regex(offset, r"^(?:Z|)$", "+00:00")
    hours = pc.cast(pc.utf8_slice_codeunits(clock, 1, 3), pa.int64())
    minutes = pc.cast(pc.utf8_slice_codeunits(clock, 4, 6), pa.int64())
    total = pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60))
    return pc.if_else(pc.starts_with(clock, "-"), pc.negate(total), total)


def _joined(seconds: Any, fraction: Any, target: ColumnType) -> Any:
    digits = unit_digits(target)
    rest = pc.utf8_slice_codeunits(fraction, target.precision)
    if pc.all(pc.match_substring_regex(rest, "^0*$")).as_py() is False:
        raise Refused("a fraction of a second that the type would cut")
    kind = pa.timestamp(UNITS[digits], "UTC")
    if digits == 0:
        return pc.cast(seconds, pa.int64()).view(kind)
    kept = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 0, digits), digits, "0")
    try:
        ticks = pc.add_checked(pc.multiply_checked(seconds, 10**digits), pc.cast(kept, pa.int64()))
    except pa.ArrowInvalid:
        raise Refused("outside the range of the type") from None
    return ticks.view(kind)


def _rescaled(seconds: Any, target: ColumnType) -> Any:
    try:
        return pc.cast(seconds, pa.timestamp(UNITS[unit_digits(target)], "UTC"))
    except pa.ArrowInvalid:
        raise Refused("outside the range of the type") from None
