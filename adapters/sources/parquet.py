"""Parquet files: types from the file's own schema, values converted exactly or refused with their row number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...domain.limits import BATCH_ROWS, MAX_SOURCE_BYTES_DEFAULT
from ...domain.ports import Progress, SourceReading
from ...domain.tables import Column, Metrics
from .declared import ExtraColumns, canonical, check_same_set
from .files import OpenedFile
from .reading import Produced, streaming
from .refusals import declaration, shown
from .registry import SourceRequest

_BATCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """A Parquet file. ``max_bytes`` bounds the file and the uncompressed bytes that its footer announces."""

    path: Path
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT

    @classmethod
    def from_request(cls, request: SourceRequest) -> ParquetSource:
        """From a manifest's settings. Raises SourceFailed (DPONE_MANIFEST_INVALID)."""
        request.require_no_options()
        return cls(request.file_path(), request.declared, request.extra_columns, request.max_bytes)

    def describe(self) -> tuple[Column, ...]:
        """The declared columns, checked against the file's; or the exact types of the file's own columns."""
        with OpenedFile.open(self.path, self.max_bytes) as file, _opened(file, self.max_bytes) as parquet:
            schema = parquet.schema_arrow
        if self.declared is None:
            return tuple(self._proposed(field) for field in schema)
        check_same_set(self.declared, schema.names, self.extra_columns, self.path.name)
        return canonical(self.declared)

    def _proposed(self, field: Any) -> Column:
        from .arrows import proposed_type

        name = proposed_type(field.type)
        if name is None:
            raise declaration(
                f"Column {shown(field.name)} of {shown(self.path.name)} is {field.type}, which no column type holds.",
                "Declare sink.columns without it and set source.options.extra_columns: ignore.",
            )
        return Column(field.name, f"Nullable({name})" if field.nullable else name)

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """Open once, read to the end, convert to ``columns``."""
        return self._read(tuple(columns), metrics, progress)

    @contextmanager
    def _read(self, columns: tuple[Column, ...], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        from .observing import Observer

        observer = Observer(columns, metrics)
        with OpenedFile.open(self.path, self.max_bytes) as file, _opened(file, self.max_bytes) as parquet:
            check_same_set(columns, parquet.schema_arrow.names, self.extra_columns, self.path.name)
            produced = self._batches(file, parquet, columns)
            with streaming(produced, observer, file.verify, file.fingerprint, progress) as reading:
                yield reading

    def _batches(self, file: OpenedFile, parquet: Any, columns: tuple[Column, ...]) -> Produced:
        from .rows import RowConverter

        kinds = [parquet.schema_arrow.field(column.name).type for column in columns]
        converter = RowConverter(self.path.name, columns, kinds)
        row_bytes = max(0, _unpacked_bytes(parquet.metadata)) // max(parquet.metadata.num_rows, 1) + 1
        rows = max(1, min(BATCH_ROWS, _BATCH_BYTES // row_bytes))
        try:
            for batch in _each(parquet, [column.name for column in columns], rows):
                arrays = [batch.column(column.name) for column in columns]
                yield converter.convert(arrays, batch.num_rows), converter.rows * row_bytes
        except (_arrow_invalid(), OSError) as error:
            raise file.unsound("Parquet file", error) from None


@contextmanager
def _opened(file: OpenedFile, max_bytes: int) -> Iterator[Any]:
    """The file as Parquet, read through the descriptor whose fingerprint was taken."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from .refusals import too_large

    try:
        parquet = pq.ParquetFile(pa.OSFile(file.reopened()), page_checksum_verification=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise file.unsound("Parquet file", error) from None
    with parquet:
        if _unpacked_bytes(parquet.metadata) > max_bytes:
            raise too_large(file.path.name, max_bytes, unpacked=True)
        yield parquet


def _each(parquet: Any, names: list[str], rows: int) -> Iterator[Any]:
    """Batches, group by group: one reader over several keeps some of what it read of each until its end."""
    import pyarrow as pa

    for group in range(parquet.num_row_groups):
        yield from parquet.iter_batches(rows, row_groups=[group], columns=names, use_threads=False)
        pa.default_memory_pool().release_unused()  # or what the groups leave behind would grow with their number


def _unpacked_bytes(metadata: Any) -> int:
    return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))


def _arrow_invalid() -> type[Exception]:
    import pyarrow as pa

    kind: type[Exception] = pa.ArrowInvalid
    return kind
