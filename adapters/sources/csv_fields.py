"""Settled CSV text into Arrow string columns, NULL recognised and nothing else interpreted."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from .csv_options import CsvOptions
from .refusals import shown, unreadable
from .structure import Block, Dialect, check_layout, settle


class FieldReader:
    """Reads the columns at ``positions`` of rows with ``width`` fields."""

    def __init__(self, dialect: Dialect, options: CsvOptions, width: int, positions: Sequence[int]) -> None:
        self._dialect = dialect
        self._width = width
        self._names = [str(place) for place in range(width)]
        wanted = [str(place) for place in positions]
        self._convert = arrow_csv.ConvertOptions(
            check_utf8=False,  # the whole block was checked
            column_types=dict.fromkeys(wanted, pa.string()),
            include_columns=wanted,
            null_values=list(options.null_values),
            strings_can_be_null=True,
            quoted_strings_can_be_null=options.quoted_null,
        )
        self._parse = {quoted: self._parsing(quoted) for quoted in (False, True)}

    def _parsing(self, quoted: bool) -> Any:
        return arrow_csv.ParseOptions(
            delimiter=self._dialect.delimiter.decode(),
            quote_char=(self._dialect.quote.decode() or False) if quoted else False,
            double_quote=True,
            newlines_in_values=quoted,
            ignore_empty_lines=False,
        )

    def texts(self, block: Block) -> list[Any]:
        """One string array per wanted column. Raises SourceFailed with the line of the first row that is not right."""
        rows = settle(block, self._width, self._dialect)
        try:
            columns = self._columns(block.data)
        except pa.ArrowInvalid:
            columns = []
        if columns and len(columns[0]) == rows:
            return columns
        rows = check_layout(block, self._width, self._dialect)  # perhaps a quoted field spans lines
        if columns and len(columns[0]) == rows:
            return columns
        raise unreadable(
            f"{shown(self._dialect.file)}: the rows from line {block.first_line} on cannot be told apart.",
            "Correct the file or source.options, then repeat the command.",
        )

    def _columns(self, data: bytes) -> list[Any]:
        table = arrow_csv.read_csv(
            # The parser drops a byte order mark at the start of what it is given; here it would be a value's first
            # character, so it is given one to drop.
            pa.BufferReader(codecs.BOM_UTF8 + data if data.startswith(codecs.BOM_UTF8) else data),
            read_options=arrow_csv.ReadOptions(column_names=self._names, block_size=len(data) + 64, use_threads=False),
            parse_options=self._parse[self._dialect.quoted(data)],
            convert_options=self._convert,
        )
        return [_one(column) for column in table.columns]


def _one(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
