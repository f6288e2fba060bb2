"""Settled CSV text into Arrow string columns, NULL recognised and nothing else interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from .csv_options import CsvOptions
from .structure import Dialect


class FieldReader:
    """Reads the columns at ``positions`` of rows with ``width`` fields."""

    def __init__(self, dialect: Dialect, options: CsvOptions, width: int, positions: Sequence[int]) -> None:
        self._dialect = dialect
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

    def texts(self, data: bytes) -> list[Any]:
        """One string array per wanted column. Raises pyarrow.ArrowInvalid for rows of another width."""
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                column_names=self._names, block_size=max(len(data) + 1, 64), use_threads=False
            ),
            parse_options=self._parse[self._dialect.quoted(data)],
            convert_options=self._convert,
        )
        return [_one(column) for column in table.columns]


def _one(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
