"""The definition of the typed hash, written out one value at a time, and values at every type's boundaries."""

from __future__ import annotations

import datetime
import hashlib
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from dpone.domain.typed_hash import format_hash, tag
from dpone.domain.types import ColumnType, parse_type

D = Decimal
date = datetime.date
_NANOSECOND_TICKS = {0: 1, 3: 1, 6: 1, 9: 1, 1: 100, 2: 10, 4: 100, 5: 10, 7: 100, 8: 10}
"""Arrow units hold more digits than some precisions: Arrow's integer per tick."""

BOUNDARIES: dict[str, list[Any]] = {
    **{f"Int{b}": [-(2 ** (b - 1)), -1, 0, 2 ** (b - 1) - 1] for b in (8, 16, 32, 64)},
    **{f"UInt{b}": [0, 1, 2**b - 1] for b in (8, 16, 32, 64)},
    "Float32": [0.0, -0.0, 1.5, 3.4028234663852886e38, 1e-45, math.inf, -math.inf, math.nan, -math.nan],
    "Float64": [0.0, -0.0, 0.1, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan, -math.nan],
    "Bool": [True, False],
    "String": [b"", b"\0", b"N;", b"a:b", "é😀".encode(), b"\xff\xfe", b"x" * 5000],
    "Date": [date(1970, 1, 1), date(2149, 6, 6)],
    "Date32": [date(1900, 1, 1), date(1969, 12, 31), date(2299, 12, 31)],
    "DateTime": [0, 2**32 - 1],
    "DateTime('America/New_York')": [0, 1_362_279_600, 1_383_458_400],
    "DateTime64(0)": [-2_208_988_800, -1, 0, 10_413_791_999],
    "DateTime64(1)": [-22_089_888_000, -1, 104_137_919_999],
    "DateTime64(3, 'Asia/Tokyo')": [-2_208_988_800_000, -1, 10_413_791_999_999],
    "DateTime64(5)": [-220_898_880_000_000, -1, 1_041_379_199_999_999],
    "DateTime64(6)": [-2_208_988_800_000_000, -1, 10_413_791_999_999_999],
    "DateTime64(8)": [-220_898_880_000_000_000, -1, 92_233_720_368_547_758],
    "DateTime64(9)": [-2_208_988_800_000_000_000, -1, 2**63 - 1],
    "Decimal(1, 0)": [D(9), D(-9), D(0)],
    "Decimal(9, 2)": [D("9999999.99"), D("-0.01"), D("1.50"), D("100.00"), D("0.00")],
    "Decimal(18, 18)": [D("0." + "9" * 18), D("-0." + "0" * 17 + "1")],
    "Decimal(18, 4)": [D("99999999999999.9999"), D("-12000.0000")],
    "Decimal(38, 38)": [D("0." + "9" * 38), D("-0." + "9" * 38)],
    "Decimal(38, 0)": [D("9" * 38), D("-1" + "0" * 37)],
    "UUID": ["00000000-0000-0000-0000-000000000000", "00112233-4455-6677-8899-aabbccddeeff"],
}


def reference(types: Sequence[ColumnType], rows: Any) -> str:
    """The table hash of rows of Python values; a DateTime is its seconds, a DateTime64 its ticks."""
    total = 0
    for row in rows:
        cells = b"".join(_cell(kind, value) for kind, value in zip(types, row, strict=True))
        total += int.from_bytes(hashlib.md5(cells, usedforsecurity=False).digest()[:8], "big")
    return format_hash(len(rows), total)


def _cell(kind: ColumnType, value: Any) -> bytes:
    if value is None:
        return b"N;"
    text = value if isinstance(value, bytes) else _text(kind, value).encode()
    return f"{tag(kind)}{len(text)}:".encode() + text


def _text(kind: ColumnType, value: Any) -> str:
    match kind.kind:
        case "Float32" | "Float64":
            if math.isnan(value):
                return str(0x7FC00000 if kind.kind == "Float32" else 0x7FF8000000000000)
            formats = ("<f", "<I") if kind.kind == "Float32" else ("<d", "<Q")
            return str(struct.unpack(formats[1], struct.pack(formats[0], value + 0.0))[0])
        case "Decimal":
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * 10 ** (exponent + kind.scale) if value else 0
            exponent = -kind.scale
            while unscaled and unscaled % 10 == 0:
                unscaled, exponent = unscaled // 10, exponent + 1
            return f"{'-' if sign else ''}{unscaled}e{exponent}" if unscaled else "0e0"
        case "Bool":
            return str(int(value))
        case _:
            return str(value)


def sent(type_name: str, value: Any) -> Any:
    """A value as Arrow has it."""
    kind = parse_type(type_name)
    return value * _NANOSECOND_TICKS[kind.precision] if kind.kind == "DateTime64" and value is not None else value
