"""Typed columns to batches of one schema, refused with row numbers: what Parquet and SQLite share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ...domain.tables import Column
from ...domain.types import ColumnType
from .arrows import from_arrow, is_bytes
from .declared import parsed
from .refusals import RowRefused, value_refused
from .shapes import arrow_type
from .texts import require_present

Convert = Callable[[Any, ColumnType], Any]


class RowConverter:
    """Converts column by column. ``kinds`` are the Arrow types that will come, where they are known beforehand."""

    def __init__(
        self,
        file: str,
        columns: Sequence[Column],
        kinds: Sequence[Any] | None = None,
        convert: Convert = from_arrow,
    ) -> None:
        self._file = file
        self._columns = tuple(columns)
        self._types = parsed(columns)
        self._convert = convert
        self.rows = 0
        known = kinds or [None] * len(columns)
        self._schema = pa.schema(
            [
                pa.field(column.name, _carried(target, kind), target.nullable)
                for column, target, kind in zip(columns, self._types, known, strict=True)
            ]
        )

    def convert(self, arrays: Sequence[Any], rows: int) -> Any:
        """The next batch. Raises SourceFailed naming the first row (counted from 1) that does not fit."""
        refusals: list[tuple[int, int, RowRefused]] = []
        converted = []
        for place, values in enumerate(arrays):
            try:
                converted.append(self._column(place, values))
            except RowRefused as refused:
                refusals.append((refused.index, place, refused))
        if refusals:
            index, place, first = min(refusals, key=lambda item: item[:2])
            where = f"row {self.rows + index + 1}"
            raise value_refused(self._file, self._columns[place].name, self._types[place], where, first.reason)
        self.rows += rows
        return pa.RecordBatch.from_arrays(converted, schema=self._schema)

    def _column(self, place: int, values: Any) -> Any:
        target = self._types[place]
        result = self._convert(values, target)
        if not target.nullable:
            require_present(result)
        kind = self._schema.field(place).type
        return result if result.type == kind else result.cast(kind)


def _carried(target: ColumnType, kind: Any) -> Any:
    """A String column of bytes stays binary: its values need not be UTF-8."""
    return pa.binary() if target.kind == "String" and kind is not None and is_bytes(kind) else arrow_type(target)
