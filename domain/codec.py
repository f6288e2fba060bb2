"""Frozen dataclasses to plain JSON values and back, strictly.

Decoding refuses unknown fields, missing fields, a boolean where a count is meant, a float where a whole number is
meant, and integers that JSON cannot carry exactly. It builds only classes that the annotations name, so stored data
can never choose what is built.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union

from .limits import COUNT_MAX

T = TypeVar("T")


class DecodeError(ValueError):
    """The data does not have the shape that the class demands."""


def encode(value: Any) -> Any:
    """Dataclasses, tuples and mappings to JSON values; everything else must be a JSON value already."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: encode(getattr(value, name)) for name in _field_types(type(value))}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, tuple | list):  # asked first: these answers cannot be disturbed by an import in another thread
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} has no place in an event")


def decode(kind: type[T], data: Any) -> T:
    """Build ``kind`` from plain JSON values. Raises DecodeError naming the path that does not fit."""
    result: T = _decode(kind, data, kind.__name__)
    return result


def parse_strict(text: str | bytes) -> Any:
    """``json.loads`` that refuses duplicate keys, NaN, infinities (also ``1e999``) and bytes that are not UTF-8."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except DecodeError:
        raise
    except (UnicodeDecodeError, RecursionError) as error:
        raise DecodeError("not JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        raise DecodeError(f"not JSON: {error.msg} at character {error.pos}") from error
    except ValueError as error:
        raise DecodeError("a number with too many digits") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise DecodeError("a key stands twice in one object")
    return result


def _no_constant(name: str) -> Any:
    raise DecodeError(f"{name} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise DecodeError("a number is too large")
    return number


@cache
def _field_types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _decode(kind: Any, data: Any, path: str) -> Any:
    if kind is Any:
        return data
    if isinstance(kind, type) and is_dataclass(kind):
        return _decode_dataclass(kind, data, path)
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_optional(kind, data, path)
    if origin is tuple:
        return _decode_tuple(kind, data, path)
    if origin is not None and issubclass(origin, Mapping):
        return _decode_mapping(kind, data, path)
    return _decode_scalar(kind, data, path)


def _decode_dataclass(kind: Any, data: Any, path: str) -> Any:
    expected = _field_types(kind)
    if not isinstance(data, dict):
        raise DecodeError(f"{path}: an object is expected")
    if data.keys() != expected.keys():
        unknown, missing = sorted(data.keys() - expected.keys()), sorted(expected.keys() - data.keys())
        raise DecodeError(f"{path}: unknown fields {unknown}, missing fields {missing}")
    return kind(**{name: _decode(hint, data[name], f"{path}.{name}") for name, hint in expected.items()})


def _decode_optional(kind: Any, data: Any, path: str) -> Any:
    options = typing.get_args(kind)
    if data is None:
        if type(None) in options:
            return None
        raise DecodeError(f"{path}: null is not expected")
    concrete = [option for option in options if option is not type(None)]
    if len(concrete) == 1:
        return _decode(concrete[0], data, path)
    for option in concrete:
        if type(data) is option:
            return _decode(option, data, path)
    raise DecodeError(f"{path}: unexpected {type(data).__name__}")


def _decode_tuple(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, list):
        raise DecodeError(f"{path}: a list is expected")
    (item_kind, _ellipsis) = typing.get_args(kind)
    return tuple(_decode(item_kind, item, f"{path}[{index}]") for index, item in enumerate(data))


def _decode_mapping(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise DecodeError(f"{path}: an object is expected")
    (_key, item_kind) = typing.get_args(kind)
    return {key: _decode(item_kind, item, f"{path}.{key}") for key, item in data.items()}


def _decode_scalar(kind: Any, data: Any, path: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(data)
        except ValueError:
            raise DecodeError(f"{path}: not one of {[item.value for item in kind]}") from None
    if type(data) is not kind:
        raise DecodeError(f"{path}: {kind.__name__} is expected, not {type(data).__name__}")
    if kind is int and abs(data) > COUNT_MAX:
        raise DecodeError(f"{path}: too large a number")
    return data
