"""Arrow batches as blocks of ClickHouse's native format, column by column, without an object for any value.

A block is: how many columns, how many rows, then for each column its name, its type and its values back to back. An
integer of any length stands in front of names and strings, seven bits to a byte, low ones first. Numbers and dates are
little-endian, decimals the unscaled integer in 4, 8 or 16 bytes, a UUID two integers of 8 bytes. In front of a
Nullable column's values stands one byte for each, 1 for NULL. See ``docs/en/interfaces/formats`` of ClickHouse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import Column
from ...domain.types import ColumnType, parse_type

_UNIT_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NUMPY: Final = {
    **{f"{sign}Int{bits}": f"<{'u' if sign else 'i'}{bits // 8}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "Float32": "<f4",
    "Float64": "<f8",
    "Date32": "<i4",
}
_LONG_BYTES: Final = 2**30
"""From here on lengths in front might not fit into offsets of 32 bits any more."""
_NIBBLES: Final = np.full(256, 255, np.uint8)
_NIBBLES[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16)
_HEX_PLACES: Final = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])
# Each half of 8 bytes is a little-endian integer.
_UUID_BYTES: Final = np.array([*range(7, -1, -1), *range(15, 7, -1)])


def block(batch: Any, columns: Sequence[Column]) -> Iterator[bytes | memoryview]:
    """The pieces of one block, in order. Raises EngineFailed for a value that the type does not hold."""
    yield varint(len(columns)) + varint(batch.num_rows)
    for array, column in zip(batch.columns, columns, strict=True):
        yield text(column.name) + text(column.type)
        yield from values(array, column)


def values(array: Any, column: Column) -> Iterator[bytes | memoryview]:
    """One column's values, in pieces."""
    column_type = parse_type(column.type)
    if column_type.nullable:
        yield _bytes(_flags(array.is_null()))
    try:
        yield _bytes(_encoded(_without_nulls(array, column_type), column_type))
    except (pa.ArrowInvalid, OverflowError):
        raise _does_not_hold(column) from None


def varint(number: int) -> bytes:
    """An integer that is not negative, seven bits to a byte."""
    encoded = bytearray()
    while number >= 128:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def text(value: str) -> bytes:
    """A name, with its length in front."""
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def _encoded(array: Any, kind: ColumnType) -> Any:
    match kind.kind:
        case "String":
            return _strings(array)
        case "UUID":
            return _uuids(array)
        case "Bool":
            return _flags(array)
        case "Date":
            return _numbers(pc.cast(array.view(pa.int32()), pa.uint16()), "<u2")
        case "DateTime":
            return _numbers(pc.cast(array.view(pa.int64()), pa.uint32()), "<u4")
        case "DateTime64":
            return _ticks(array, kind.precision)
        case "Decimal":
            return _decimals(array, kind.precision)
        case number:
            return _numbers(array, _NUMPY[number])


def _without_nulls(array: Any, kind: ColumnType) -> Any:
    """NULLs become zeros, so that no leftover of a buffer travels; for a Decimal and a UUID see there."""
    if array.null_count == 0 or kind.kind in ("String", "UUID", "Decimal"):
        return array
    zero = False if kind.kind == "Bool" else 0
    if pa.types.is_temporal(array.type):
        whole = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
        return pc.fill_null(array.view(whole), zero).view(array.type)
    return pc.fill_null(array, pa.scalar(zero, array.type))


def _numbers(array: Any, dtype: str) -> Any:
    width = np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * width) if len(array) else b""


def _flags(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False).view(np.uint8) if len(array) else b""


def _ticks(array: Any, digits: int) -> Any:
    """Arrow's unit is the next finer one: what lies below the type's last digit must be zero."""
    ticks = _numbers(array, "<i8")
    surplus = _UNIT_DIGITS[array.type.unit] - digits
    if surplus == 0 or not len(array):
        return ticks
    quotient, remainder = np.divmod(ticks, 10**surplus)
    if remainder.any():
        raise OverflowError
    return quotient


def _decimals(array: Any, precision: int) -> Any:
    """Arrow keeps 16 bytes in two's complement, low half first; NULLs are zero."""
    if not len(array):
        return b""
    wide = np.frombuffer(array.buffers()[1], "<i8", 2 * len(array), array.offset * 16).reshape(-1, 2)
    if array.null_count:
        wide = np.where(array.is_null().to_numpy(zero_copy_only=False)[:, None], 0, wide)
    if precision > 18:
        return np.ascontiguousarray(wide)
    low = wide[:, 0]
    if precision > 9:
        return np.ascontiguousarray(low)
    return low.astype("<i4")


def _uuids(array: Any) -> Any:
    if not len(array):
        return b""
    filled = pc.fill_null(array, "00000000-0000-0000-0000-000000000000") if array.null_count else array
    offsets, characters = _offsets(filled), filled.buffers()[2]
    if not (np.diff(offsets) == 36).all():
        raise OverflowError
    start = int(offsets[0])
    letters = np.frombuffer(characters, np.uint8, 36 * len(array), start).reshape(-1, 36)
    nibbles = _NIBBLES[letters[:, _HEX_PLACES]]
    if (nibbles == 255).any():
        raise OverflowError
    return np.ascontiguousarray((nibbles[:, ::2] << 4 | nibbles[:, 1::2])[:, _UUID_BYTES])


def _strings(array: Any) -> Any:
    """Every string with its length in front, both put together by Arrow."""
    if not len(array):
        return b""
    kind = pa.large_binary() if _is_large(array.type) or array.nbytes > _LONG_BYTES else pa.binary()
    content = pc.fill_null(array.cast(kind), pa.scalar(b"", kind)) if array.null_count else array.cast(kind)
    lengths = pc.binary_length(content).dictionary_encode()
    prefixes = pa.array([varint(length) for length in lengths.dictionary.to_pylist()], kind).take(lengths.indices)
    joined = pc.binary_join_element_wise(prefixes, content, pa.scalar(b"", kind))
    return np.frombuffer(joined.buffers()[2], np.uint8, int(_offsets(joined)[-1]))


def _offsets(array: Any) -> Any:
    dtype = np.dtype("<i8" if _is_large(array.type) else "<i4")
    offsets = np.frombuffer(array.buffers()[1], dtype, len(array) + 1, array.offset * dtype.itemsize)
    return offsets.astype(np.int64, copy=False)


def _is_large(kind: Any) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _bytes(piece: Any) -> bytes | memoryview:
    return piece if isinstance(piece, bytes) else memoryview(piece).cast("B")


def _does_not_hold(column: Column) -> EngineFailed:
    return EngineFailed(
        ErrorCode.VALUE_REFUSED,
        f"Column {column.name} of type {column.type} was handed a value that the type does not hold.",
        safe="The live table was not touched.",
        next="Report this: it is a defect.",
    )
