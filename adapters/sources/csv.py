"""CSV files: strict structure with line numbers (:mod:`.structure`), fields as text, checked conversions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...domain.limits import MAX_SOURCE_BYTES_DEFAULT
from ...domain.ports import Progress, SourceReading
from ...domain.tables import Column, Metrics
from .csv_options import CsvOptions
from .csv_text import CsvText, open_text
from .declared import ExtraColumns, canonical, check_same_set, parsed
from .files import OpenedFile
from .prefetch import Prefetched
from .reading import Produced, streaming
from .refusals import RowRefused, declaration, shown, value_refused
from .registry import SourceRequest
from .structure import Block, row_line

_BLOCKS_AHEAD = 2


@dataclass(frozen=True, slots=True)
class CsvSource:
    """A CSV file, as it is or inside gzip or a zip of one member. ``max_bytes`` bounds the unpacked bytes."""

    path: Path
    options: CsvOptions = field(default_factory=CsvOptions)
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT

    @classmethod
    def from_request(cls, request: SourceRequest) -> CsvSource:
        """From a manifest's settings. Raises SourceFailed (DPONE_MANIFEST_INVALID) for an unknown or wrong option."""
        options = CsvOptions.from_mapping(request.options)
        return cls(request.file_path(), options, request.declared, request.extra_columns, request.max_bytes)

    def describe(self) -> tuple[Column, ...]:
        """The declared columns, checked against the header. Without a declaration: refused, with proposed types."""
        if self.declared is None:
            from .csv_proposal import propose

            raise propose(self.path, self.options, self.max_bytes)
        with OpenedFile.open(self.path, self.max_bytes) as file:
            text = open_text(file, self.options, self.max_bytes)
            self._positions(text, self.declared)
        return canonical(self.declared)

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """Open once, read to the end, convert to ``columns``."""
        return self._read(tuple(columns), metrics, progress)

    @contextmanager
    def _read(self, columns: tuple[Column, ...], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        from .observing import Observer

        observer = Observer(columns, metrics)
        with OpenedFile.open(self.path, self.max_bytes) as file:
            produced = self._batches(file, columns)
            with streaming(produced, observer, file.verify, file.fingerprint, progress) as reading:
                yield reading

    def _batches(self, file: OpenedFile, columns: tuple[Column, ...]) -> Produced:
        from .csv_fields import FieldReader

        text = open_text(file, self.options, self.max_bytes)
        positions = self._positions(text, columns)
        reader = FieldReader(text.dialect, self.options, len(text.header), positions)
        batches = _Converter(text, reader, columns, self.options.decimal_point)
        with Prefetched(text.blocks, _BLOCKS_AHEAD) as blocks:
            for block in blocks:
                yield batches.convert(block), block.read

    def _positions(self, text: CsvText, columns: Sequence[Column]) -> tuple[int, ...]:
        """Where each column stands in a row."""
        if text.names is None:
            if len(text.header) != len(columns):
                raise declaration(
                    f"{shown(self.path.name)} has {len(text.header)} fields in a row, and {len(columns)} are declared.",
                    "Declare one column for each field, in order (the file has no header).",
                )
            return tuple(range(len(columns)))
        check_same_set(columns, text.names, self.extra_columns, self.path.name)
        places = {name: place for place, name in enumerate(text.names)}
        return tuple(places[column.name] for column in columns)


class _Converter:
    """Blocks of text to batches of one schema."""

    def __init__(self, text: CsvText, reader: Any, columns: tuple[Column, ...], decimal_point: str) -> None:
        import pyarrow as pa

        from .shapes import arrow_type

        self._text, self._reader, self._point = text, reader, decimal_point
        self._columns, self._types = columns, parsed(columns)
        self._schema = pa.schema(
            [pa.field(c.name, arrow_type(t), t.nullable) for c, t in zip(columns, self._types, strict=True)]
        )

    def convert(self, block: Block) -> Any:
        """One batch. Raises SourceFailed with the line of the first row that does not fit."""
        import pyarrow as pa

        texts = self._reader.texts(block)
        refusals: dict[int, RowRefused] = {}
        arrays = []
        for place, values in enumerate(texts):
            try:
                arrays.append(self._column(place, values))
            except RowRefused as refused:
                refusals[place] = refused
        if refusals:
            self._refuse(block, refusals)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, place: int, texts: Any) -> Any:
        from .texts import from_texts, require_present

        target = self._types[place]
        if not target.nullable:
            require_present(texts)
        return from_texts(texts, target, self._point)

    def _refuse(self, block: Block, refusals: Mapping[int, RowRefused]) -> None:
        place, refused = min(refusals.items(), key=lambda item: item[1].index)
        line = row_line(block, refused.index, self._text.dialect)
        file = self._text.dialect.file
        raise value_refused(file, self._columns[place].name, self._types[place], f"line {line}", refused.reason)
