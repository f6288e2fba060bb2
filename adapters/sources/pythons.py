"""Python values of mixed classes (what SQLite yields) to a target type: each by itself, exactly, or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType
from .arrows import from_arrow
from .refusals import RowRefused
from .shapes import arrow_type
from .texts import from_texts

_FROM_TEXT = ("Date", "Date32", "DateTime", "DateTime64", "UUID", "Decimal")


def carried_kind(target: ColumnType) -> Any:
    """The Arrow type that comes out: a String may hold bytes, so it is always binary."""
    return pa.binary() if target.kind == "String" else arrow_type(target)


def from_python(values: Sequence[Any], target: ColumnType) -> Any:
    """A column of None, int, float, str and bytes as Arrow. Raises RowRefused for the first that does not fit."""
    classes = set(map(type, values)) - {type(None)}
    if len(classes) == 1:
        return _of_class(classes.pop(), values, target)
    parts, refusals = [pa.nulls(len(values), carried_kind(target))], []
    for kind in classes:
        try:
            parts.append(_of_class(kind, [value if type(value) is kind else None for value in values], target))
        except RowRefused as refused:
            refusals.append(refused)
    if refusals:
        raise min(refusals, key=lambda refused: refused.index)
    return pc.coalesce(*parts)


def _of_class(kind: type, values: Sequence[Any], target: ColumnType) -> Any:
    convert = _CLASSES.get(kind, _refused)
    return convert(values, target)


def _integers(values: Sequence[Any], target: ColumnType) -> Any:
    if target.is_integer or target.kind in ("Float32", "Float64", "Bool", "Decimal"):
        return from_arrow(pa.array(values, pa.int64()), target)
    return _refused(values, target)


def _floats(values: Sequence[Any], target: ColumnType) -> Any:
    if target.is_integer or target.kind in ("Float32", "Float64"):
        return from_arrow(pa.array(values, pa.float64()), target)
    if target.kind == "Decimal":
        exact = [None if value is None else f"{Decimal(value):f}" for value in values]
        return from_texts(pa.array(exact, pa.string()), target)
    return _refused(values, target)


def _texts(values: Sequence[Any], target: ColumnType) -> Any:
    if target.kind == "String":
        return pa.array(values, pa.string()).cast(pa.binary())
    if target.kind in _FROM_TEXT:
        return from_texts(pa.array(values, pa.string()), target)
    return _refused(values, target)


def _bytes(values: Sequence[Any], target: ColumnType) -> Any:
    return pa.array(values, pa.binary()) if target.kind == "String" else _refused(values, target)


def _refused(values: Sequence[Any], target: ColumnType) -> Any:
    index = next(place for place, value in enumerate(values) if value is not None)
    raise RowRefused(index, "a value of another class than the type holds")


_CLASSES: dict[type, Callable[[Sequence[Any], ColumnType], Any]] = {
    int: _integers,
    float: _floats,
    str: _texts,
    bytes: _bytes,
}
