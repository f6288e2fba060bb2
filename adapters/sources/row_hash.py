"""The typed hash of :mod:`dpone.domain.typed_hash`, over Arrow batches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.typed_hash import NULL_CELL, tag
from ...domain.types import ColumnType
from .shapes import unit_digits

_QUIET_NAN = float("nan")


def batch_hash(batch: Any, types: Sequence[ColumnType]) -> int:
    """The sum of the rows' hashes, modulo 2**64."""
    import numpy as np

    if batch.num_rows == 0:
        return 0
    cells = [_cells(values, target) for values, target in zip(batch.columns, types, strict=True)]
    rows = pc.binary_join_element_wise(*cells, b"").to_pylist() if len(cells) > 1 else cells[0].to_pylist()
    md5 = hashlib.md5
    digests = b"".join([md5(row, usedforsecurity=False).digest()[:8] for row in rows])
    return int(np.frombuffer(digests, ">u8").sum(dtype=np.uint64))


def canonical_bits(values: Any) -> Any:
    """Floats as their bits, with one NaN and one zero, so that equal means identical."""
    wide = values.type == pa.float64()
    zero, nan = pa.scalar(0.0, values.type), pa.scalar(_QUIET_NAN, values.type)
    one_zero = pc.add(values, zero)
    return pc.if_else(pc.is_nan(one_zero), nan, one_zero).view(pa.uint64() if wide else pa.uint32())


def _cells(values: Any, target: ColumnType) -> Any:
    encoded = values.dictionary_encode()
    if 2 * len(encoded.dictionary) > len(values):
        return _cells_of(values, target)
    # Most columns repeat: building each distinct cell once is several times faster.
    found = _cells_of(encoded.dictionary, target)
    return pc.fill_null(found.take(encoded.indices), NULL_CELL)


def _cells_of(values: Any, target: ColumnType) -> Any:
    texts = _texts(values, target)
    lengths = pc.cast(pc.cast(pc.binary_length(texts), pa.string()), pa.binary())
    joined = pc.binary_join_element_wise(tag(target).encode(), lengths, b":", texts, b"")
    return pc.fill_null(joined, NULL_CELL)


def _texts(values: Any, target: ColumnType) -> Any:
    match target.kind:
        case "Bool":
            texts = pc.if_else(values, "1", "0")
        case "Date" | "Date32":
            texts = pc.strftime(values, "%Y-%m-%d")
        case "DateTime" | "DateTime64":
            step = 10 ** (unit_digits(target) - target.precision)
            texts = pc.cast(pc.divide(values.view(pa.int64()), step), pa.string())
        case "Decimal":
            texts = pa.array([None if d is None else _decimal(d) for d in values.to_pylist()], pa.string())
        case "Float32" | "Float64":
            texts = pc.cast(canonical_bits(values), pa.string())
        case "String" | "UUID":
            texts = values
        case _:
            texts = pc.cast(values, pa.string())
    return pc.cast(texts, pa.binary())


def _decimal(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return "0e0"
    plain = text.rstrip("0")
    return f"{'-' if sign else ''}{plain}e{int(exponent) + len(text) - len(plain)}"
