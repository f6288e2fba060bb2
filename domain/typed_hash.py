"""The typed hash of a table: one definition, the same from every engine and from Python.

* A **cell** is ``N;`` when NULL, else its type tag, the byte length of its text in decimal, ``:`` and the text.
* A **row** is the concatenation of its cells in column order; its hash is the first eight bytes of the MD5 of that,
  read big-endian (ClickHouse's ``halfMD5``).
* A **table** is its row count and the sum of its rows' hashes modulo 2**64: order does not matter, repetition does.

Texts: integers in decimal; Bool ``1`` or ``0``; String its bytes; Date and Date32 ``YYYY-MM-DD``; DateTime the seconds
since 1970 UTC in decimal, DateTime64 its ticks (10**-p s) in decimal; Decimal the unscaled integer with trailing zeros
removed, ``e`` and the exponent (``150e-2`` is ``15e-1``; zero is ``0e0``); Float32 and Float64 the IEEE 754 bits as an
unsigned decimal number, with one NaN (the quiet one, sign clear) and -0.0 as 0.0; UUID 36 lower-case characters.
"""

from __future__ import annotations

from .types import ColumnType

NULL_CELL = b"N;"

_TAGS = {
    "Bool": "b",
    "String": "s",
    "Date": "d",
    "Date32": "d",
    "DateTime": "t",
    "DateTime64": "u",
    "Decimal": "n",
    "Float32": "f",
    "Float64": "g",
    "UUID": "x",
}


def tag(column_type: ColumnType) -> str:
    """The one-letter tag of a type: all integer widths share ``i``."""
    return "i" if column_type.is_integer else _TAGS[column_type.kind]


def format_hash(rows: int, total: int) -> str:
    """The text form that observations carry."""
    return f"v1:{rows}:{total % 2**64}"
