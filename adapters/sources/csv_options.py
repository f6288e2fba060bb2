"""How a CSV file is written: the options of a manifest's ``source.options``."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from ...domain.limits import SKIP_ROWS_MAX
from .refusals import declaration, shown
from .unpacking import Compression

_COMPRESSIONS = ("auto", "none", "gzip", "zip")


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """``null_values`` are NULL when a whole unquoted field equals one (quoted too with ``quoted_null``).

    ``quote`` is one ASCII character, or empty when no field is quoted. ``skip_rows`` physical lines come before the
    header. ``trim`` takes blanks and tabs off both ends of every unquoted field, before NULL is recognised.
    ``compression`` ``auto`` decides by the file's first bytes.
    """

    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    null_values: tuple[str, ...] = ("",)
    quoted_null: bool = False
    decimal_point: str = "."
    skip_rows: int = 0
    trim: bool = False
    compression: Compression = "auto"

    def __post_init__(self) -> None:
        _require(_one(self.delimiter) and self.delimiter not in '\r\n\0"', "delimiter", "one ASCII character")
        _require(self.quote == "" or (_one(self.quote) and self.quote not in "\r\n\0"), "quote", "one ASCII character")
        _require(self.quote != self.delimiter, "quote", "another character than the delimiter")
        _require(self.decimal_point in (".", ","), "decimal_point", '"." or ","')
        _require(
            type(self.skip_rows) is int and 0 <= self.skip_rows <= SKIP_ROWS_MAX, "skip_rows", f"0 to {SKIP_ROWS_MAX}"
        )
        _require(self.compression in _COMPRESSIONS, "compression", ", ".join(_COMPRESSIONS))
        _require(_is_texts(self.null_values), "null_values", "a list of texts")
        for name in ("header", "quoted_null", "trim"):
            _require(type(getattr(self, name)) is bool, name, "true or false")
        _require(_known(self.encoding), "encoding", "the name of a text encoding, such as utf-8 or latin-1")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> CsvOptions:
        """From a manifest. Raises SourceFailed (DPONE_MANIFEST_INVALID) naming the option and what it accepts."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                _refuse(f"source.options.{shown(str(name))[1:-1]} is not known.", f"Options: {', '.join(known)}.")
        given = dict(options)
        if isinstance(given.get("null_values"), list):
            given["null_values"] = tuple(given["null_values"])
        return cls(**given)

    @property
    def is_utf8(self) -> bool:
        """Whether the text needs no transcoding."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")


def _one(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 1 and text.isascii()


def _is_texts(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def _known(encoding: Any) -> bool:
    try:
        found = codecs.lookup(encoding)
        return found._is_text_encoding and found.incrementaldecoder is not None
    except (LookupError, TypeError, ValueError):
        return False


def _require(holds: bool, name: str, accepted: str) -> None:
    if not holds:
        _refuse(f"source.options.{name} is not accepted.", f"source.options.{name} takes {accepted}.")


def _refuse(what: str, next_step: str) -> NoReturn:
    raise declaration(what, next_step)
