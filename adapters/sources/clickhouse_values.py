"""Columns as they arrive from a ClickHouse server, as Arrow's, and exactly as a target type.

Apart from :mod:`.clickhouse_types`, so that describing a table imports no Arrow: that is a quarter of a second, which
passes beside what a load waits for.
"""

from __future__ import annotations

from functools import partial
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType
from .arrows import from_arrow, is_bytes
from .clickhouse_types import Form, Travelling
from .refusals import RowRefused
from .shapes import UNITS, Refused, arrow_type, first_refused, unit_digits


def kind_of(way: Travelling) -> Any:
    """The Arrow type of the source's own values."""
    if way.form is Form.TEXT and way.proposed.kind == "String":
        return pa.string()
    return pa.binary() if way.proposed.kind == "String" else arrow_type(way.proposed)


def from_server(arrived: tuple[Travelling, Any], target: ColumnType) -> Any:
    """A column as it arrived, as the target's Arrow type. Raises RowRefused.

    As :func:`.arrows.from_arrow`; bytes that are declared as another type are read as text, which must be UTF-8.
    """
    way, raw = arrived
    values = decoded(raw, way)
    if is_bytes(values.type) and target.kind != "String":
        values = _text(values)
    return from_arrow(values, target)


def decoded(values: Any, way: Travelling) -> Any:
    """What arrived, as ``kind_of`` says."""
    match way.form:
        case Form.ITSELF:
            return values
        case Form.TEXT:
            return _text(values)
        case Form.HEXADECIMAL:
            return _from_hex(values)
        case Form.FLAG:
            return pc.not_equal(pa.scalar(0, pa.uint8()), values)
        case Form.DAYS:
            return pc.cast(values, pa.int32()).view(pa.date32())
        case Form.SECONDS:
            return pc.cast(values, pa.int64()).view(pa.timestamp("s", "UTC"))
        case Form.TICKS:
            return _ticks(values, way.proposed)
    assert_never(way.form)


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


def _text(values: Any) -> Any:
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        found: RowRefused = first_refused(partial(pc.cast, target_type=pa.string()), values)
        raise RowRefused(found.index, "not text in UTF-8") from None
