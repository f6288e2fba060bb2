"""Text to a target type: exactly, or refused with the first row that does not fit.

The accepted forms: integers ``[+-]?digits``; floats in decimal or exponent form, ``nan``, ``inf`` and ``infinity`` with
a sign, in any case; decimals likewise without the words; Bool ``true``, ``false`` (also ``True``, ``TRUE``, …), ``1``,
``0``; Date ``YYYY-MM-DD``; times as :mod:`.times` says; UUID as 36 characters in either case. No blanks around any.

A decimal text is rounded to the nearest Float32 or Float64 (ties to even), as every engine reads such text; a text so
large that this would be an infinity is refused, one so small that it would be zero is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.types import ColumnType
from .refusals import RowRefused
from .shapes import Refused, arrow_type, check_range, first_refused
from .times import instants

_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WORD = r"(?i)^[+-]?(nan|inf|infinity)$"
_UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
_TRUE = ("true", "True", "TRUE", "1")
_FALSE = ("false", "False", "FALSE", "0")


def from_texts(texts: Any, target: ColumnType, decimal_point: str = ".") -> Any:
    """An Arrow string array as the target's Arrow type. Raises RowRefused. NULL stays NULL."""
    if target.kind == "String":
        return texts
    convert = partial(_converter(target), target=target, point=decimal_point)
    try:
        return convert(texts)
    except (Refused, pa.ArrowInvalid):
        raise first_refused(convert, texts) from None


def _converter(target: ColumnType) -> Callable[..., Any]:
    if target.is_integer:
        return _integers
    match target.kind:
        case "Float32" | "Float64":
            return _floats
        case "Bool":
            return _booleans
        case "Date" | "Date32":
            return _dates
        case "DateTime" | "DateTime64":
            return _times
        case "Decimal":
            return _decimals
        case _:
            return _uuids


def _integers(texts: Any, target: ColumnType, point: str) -> Any:
    kind = arrow_type(target)
    if not _holds(texts, b"xX"):  # Arrow reads 0x1F as a number; everything else that it reads is strict
        try:
            return pc.cast(texts, kind)
        except pa.ArrowInvalid:
            pass  # perhaps only a plus sign: look closer
    _require(texts, _INTEGER, "not a whole number")
    plain = pc.replace_substring_regex(texts, r"^\+", "")
    plain = pc.replace_substring_regex(plain, r"^(-?)0+([0-9])", r"\1\2")
    plain = pc.replace_substring_regex(plain, r"^-0$", "0")
    try:
        return pc.cast(plain, kind)
    except pa.ArrowInvalid:
        raise Refused("outside the range of the type") from None


def _floats(texts: Any, target: ColumnType, point: str) -> Any:
    texts = _with_point(texts, point)
    try:
        values = pc.cast(texts, arrow_type(target))
    except pa.ArrowInvalid:
        raise Refused("not a number") from None
    if pc.all(pc.is_finite(values)).as_py() is not False:
        return values
    named = pc.match_substring_regex(texts, _WORD)
    if pc.all(pc.or_(pc.is_finite(values), named)).as_py() is False:
        raise Refused("not a number within the range of the type")
    return values


def _decimals(texts: Any, target: ColumnType, point: str) -> Any:
    texts = _with_point(texts, point)
    try:
        return pc.cast(texts, arrow_type(target))
    except pa.ArrowInvalid:
        _require(texts, _NUMBER, "not a number")
        raise Refused("more digits than the type holds") from None


def _booleans(texts: Any, target: ColumnType, point: str) -> Any:
    found = pc.index_in(texts, value_set=pa.array(_TRUE + _FALSE))
    if found.null_count != texts.null_count:
        raise Refused("neither true nor false")
    return pc.less(found, len(_TRUE))


def _dates(texts: Any, target: ColumnType, point: str) -> Any:
    try:
        values = pc.cast(texts, pa.date32())
    except pa.ArrowInvalid:
        raise Refused("not a date YYYY-MM-DD") from None
    return check_range(values, target)


def _times(texts: Any, target: ColumnType, point: str) -> Any:
    return instants(texts, target)


def _uuids(texts: Any, target: ColumnType, point: str) -> Any:
    _require(texts, _UUID, "not a UUID of 36 characters")
    return pc.ascii_lower(texts)


def _require(texts: Any, pattern: str, reason: str) -> None:
    if pc.all(pc.match_substring_regex(texts, pattern)).as_py() is False:
        raise Refused(reason)


def _with_point(texts: Any, point: str) -> Any:
    if point == ".":
        return texts
    if _holds(texts, b".") and pc.any(pc.match_substring(texts, ".")).as_py():
        raise Refused(f'not a number with the decimal point "{point}"')
    return pc.replace_substring(texts, point, ".")


def _holds(texts: Any, letters: bytes) -> bool:
    """Whether any of the letters may occur (a slice may answer yes for its neighbours, never no for itself)."""
    data = texts.buffers()[2]
    if data is None:
        return False
    content = data.to_pybytes()
    return any(content.find(letter) >= 0 for letter in letters)


def require_present(values: Any) -> None:
    """Raise RowRefused for the first NULL."""
    if values.null_count:
        raise RowRefused(pc.index(pc.is_null(values), True).as_py(), "NULL where the type takes none")
