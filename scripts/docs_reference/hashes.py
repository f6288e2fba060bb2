"""Test vectors of the typed hash, computed by the code that hashes rows while they are read."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any, Final

from .pages import table

_DAY: Final = 19_844  # 2024-05-01, in days since 1970
_VECTORS: Final[tuple[tuple[tuple[str, ...], tuple[Any, ...], str], ...]] = (
    (("UInt8",), (1,), "1"),
    (("Int64",), (1,), "1: all widths of whole numbers share one tag"),
    (("String",), ("1",), "'1': a text is not a number"),
    (("Bool",), (True,), "true: a flag is not a number"),
    (("Float64",), (1.0,), "1.0: by its bits"),
    (("Float64",), (-0.0,), "-0.0, as 0.0"),
    (("Float64",), (float("nan"),), "NaN: there is one"),
    (("Nullable(String)",), (None,), "NULL"),
    (("String",), ("",), "the empty text is not NULL"),
    (("String", "String"), ("a", "bc"), "'a', 'bc'"),
    (("String", "String"), ("ab", "c"), "'ab', 'c': neighbours do not run together"),
    (("Decimal(10, 2)",), (Decimal("1.50"),), "1.50: without trailing zeros"),
    (("Decimal(10, 2)",), (Decimal("0.00"),), "0.00"),
    (("Date",), (_DAY,), "2024-05-01"),
    (("DateTime('UTC')",), (1_714_557_600,), "2024-05-01 10:00:00 UTC, in seconds"),
    (("DateTime64(3, 'UTC')",), (1_714_557_600_250,), "2024-05-01 10:00:00.250 UTC, in milliseconds"),
    (("UUID",), ("00112233-4455-6677-8899-aabbccddeeff",), "00112233-4455-6677-8899-aabbccddeeff"),
    (("UInt32", "Nullable(String)", "Decimal(10, 2)"), (7, None, Decimal("19.90")), "7, NULL, 19.90"),
)


def vectors() -> str:
    """One row a vector: types, value, the row's bytes, the row's hash. Then all vectors of one type as a table."""
    rows = []
    for kinds, values, shown in _VECTORS:
        text = _bytes(kinds, values)
        rows.append((f"`{', '.join(kinds)}`", shown, f"`{text.decode()}`", f"`{_hash(kinds, values)}`"))
    return table(("types", "value", "row", "hash"), rows)


def _hash(kinds: tuple[str, ...], values: tuple[Any, ...]) -> int:
    from dpone.adapters.sources.row_hash import batch_hash
    from dpone.domain.types import parse_type

    return batch_hash(_batch(kinds, values), [parse_type(kind) for kind in kinds])


def _bytes(kinds: tuple[str, ...], values: tuple[Any, ...]) -> bytes:
    """The row before it is hashed. Raises ValueError unless its MD5 is what the product computes."""
    from dpone.adapters.sources.row_hash import _cells_of
    from dpone.domain.types import parse_type

    batch = _batch(kinds, values)
    cells = [_cells_of(column, parse_type(kind))[0].as_py() for column, kind in zip(batch.columns, kinds, strict=True)]
    row: bytes = b"".join(cells)
    if int.from_bytes(hashlib.md5(row, usedforsecurity=False).digest()[:8], "big") != _hash(kinds, values):
        raise ValueError("the vector's bytes are not what is hashed")
    return row


def _batch(kinds: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    import pyarrow as pa

    from dpone.adapters.sources.shapes import arrow_type
    from dpone.domain.types import parse_type

    arrays = [pa.array([value], arrow_type(parse_type(kind))) for kind, value in zip(kinds, values, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])
