"""Column types for a CSV that declares none: proposed from every row of the file, never from a sample.

The narrowest type that every value fits is proposed. Whole numbers that begin with a zero or a plus are codes, not
counts, and stay text. Times are proposed in UTC.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from ...domain.errors import SourceFailed
from ...domain.types import ColumnType, parse_type
from .csv_fields import FieldReader
from .csv_options import CsvOptions
from .csv_text import CsvText, open_text
from .declared import check_same_set
from .files import OpenedFile
from .refusals import RowRefused, declaration, shown
from .texts import from_texts

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_CODE = r"^([+]|[+-]?0[0-9])"
_TOO_LONG = r"^-?[0-9]{16,}$"  # a whole number that Float64 may round
_NUMBERS = ("Int64", "UInt64")
_CANDIDATES = (
    "Bool",
    *_NUMBERS,
    "Float64",
    "Date",
    "Date32",
    "DateTime('UTC')",
    "DateTime64(3, 'UTC')",
    "DateTime64(6, 'UTC')",
    "DateTime64(9, 'UTC')",
    "UUID",
)
_NARROWEST = ("UInt8", "Int8", "UInt16", "Int16", "UInt32", "Int32", "UInt64", "Int64")


@dataclass(slots=True)
class _Guess:
    """What is still possible for one column after the rows seen so far."""

    rows: int = 0
    nulls: int = 0
    alive: list[str] = field(default_factory=lambda: list(_CANDIDATES))
    low: int = 0
    high: int = 0

    def add(self, texts: Any, decimal_point: str) -> None:
        self.rows += len(texts)
        self.nulls += texts.null_count
        if texts.null_count == len(texts):
            return
        self.alive = [name for name in self.alive if self._fits(texts, name, decimal_point)]

    def _fits(self, texts: Any, name: str, decimal_point: str) -> bool:
        if name == "Bool" and pc.any(pc.match_substring_regex(texts, "^[01]$")).as_py():
            return False  # more likely a count than a flag; both hold it
        if (name in _NUMBERS or name == "Float64") and pc.any(pc.match_substring_regex(texts, _CODE)).as_py():
            return False
        if name == "Float64" and pc.any(pc.match_substring_regex(texts, _TOO_LONG)).as_py():
            return False
        try:
            values = from_texts(texts, parse_type(name), decimal_point)
        except RowRefused:
            return False
        if name in _NUMBERS:
            ends = pc.min_max(values).as_py()
            self.low, self.high = min(self.low, ends["min"]), max(self.high, ends["max"])
        return True

    @property
    def type(self) -> str:
        """The narrowest type that holds all values."""
        return "String" if self.nulls == self.rows or not self.alive else self._narrowed(self.alive[0])

    def _narrowed(self, name: str) -> str:
        if name not in _NUMBERS:
            return name
        for kind in _NARROWEST:
            low, high = ColumnType(kind).integer_range
            if low <= self.low and self.high <= high:
                return kind
        return "String"

    @property
    def proposal(self) -> str:
        """With Nullable where NULL occurred."""
        return f"Nullable({self.type})" if self.nulls else self.type


def propose(path: Path, options: CsvOptions, max_bytes: int) -> SourceFailed:
    """The refusal of an untyped CSV, carrying a block to paste. Raises SourceFailed when the file cannot be read."""
    with OpenedFile.open(path, max_bytes) as file:
        text = open_text(file, options, max_bytes)
        if text.names is not None:
            check_same_set((), text.names, "ignore", path.name)
        names = text.names or tuple(f"column_{place + 1}" for place in range(len(text.header)))
        guesses = _scan(text, options)
        file.verify()
    block = columns_block(names, [guess.proposal for guess in guesses])
    return declaration(
        f"{shown(path.name)} is a CSV file: its columns' types must be declared.",
        f"Paste this into the process's sink (types proposed from all {guesses[0].rows:,} rows) and check it:\n{block}",
        (f"{shown(path.name)} is a CSV file: its columns' types must be declared.", block),
        block,
    )


def _scan(text: CsvText, options: CsvOptions) -> list[_Guess]:
    width = len(text.header)
    reader = FieldReader(text.dialect, options, width, range(width))
    guesses = [_Guess() for _ in range(width)]
    for block in text.blocks:
        for guess, texts in zip(guesses, reader.texts(block), strict=True):
            guess.add(texts, options.decimal_point)
    return guesses


def columns_block(names: tuple[str, ...], types: list[str]) -> str:
    """YAML: ``columns:`` and one line for each column, in order."""
    return "\n".join(
        ["columns:", *(f"  {_key(name)}: {_value(kind)}" for name, kind in zip(names, types, strict=True))]
    )


def _key(name: str) -> str:
    if _PLAIN_KEY.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return _quoted(name)


def _value(kind: str) -> str:
    return kind if kind.isalnum() else _quoted(kind)


def _quoted(text: str) -> str:
    escape: Callable[[str], str] = lambda c: c if c.isprintable() else f"\\U{ord(c):08X}"  # noqa: E731
    return "".join(escape(character) for character in json.dumps(text, ensure_ascii=False))
