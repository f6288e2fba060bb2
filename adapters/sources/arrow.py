"""Arrow IPC files (``.arrow``, Feather version 2) and streams (``.arrows``): the file's own types, exact conversions.

The two formats are told apart by their first bytes (Arrow's columnar format, section "IPC File Format"), never by the
name. Buffers compressed with LZ4 or ZSTD are unpacked batch by batch. ``max_source_bytes`` bounds the file and the
unpacked bytes of its batches. Arrow's IPC has no checksums: damage inside a buffer shows only where it breaks a
structure or a text's encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...domain.limits import MAX_SOURCE_BYTES_DEFAULT
from ...domain.ports import Progress, SourceReading
from ...domain.tables import Column, Metrics
from .declared import ExtraColumns, canonical, check_same_set
from .files import OpenedFile
from .reading import Produced, streaming
from .refusals import declaration, shown, too_large
from .registry import SourceRequest

_FILE_MAGIC: Final = b"ARROW1"


@dataclass(frozen=True, slots=True)
class ArrowSource:
    """An Arrow IPC file or stream."""

    path: Path
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT

    @classmethod
    def from_request(cls, request: SourceRequest) -> ArrowSource:
        """From a manifest's settings. Raises SourceFailed (DPONE_MANIFEST_INVALID)."""
        request.require_no_options()
        return cls(request.file_path(), request.declared, request.extra_columns, request.max_bytes)

    def describe(self) -> tuple[Column, ...]:
        """The declared columns, checked against the file's; or the exact types of the file's own columns."""
        with OpenedFile.open(self.path, self.max_bytes) as file, _opened(file) as ipc:
            schema = ipc.schema
        if self.declared is None:
            return tuple(self._proposed(field) for field in schema)
        check_same_set(self.declared, schema.names, self.extra_columns, self.path.name)
        return canonical(self.declared)

    def _proposed(self, field: Any) -> Column:
        from .arrows import proposed_type

        name = proposed_type(field.type)
        if name is None:
            raise declaration(
                f"Column {shown(field.name)} of {shown(self.path.name)} is {str(field.type)[:60]}, "
                "which no column type holds.",
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
        with OpenedFile.open(self.path, self.max_bytes) as file, _opened(file) as ipc:
            check_same_set(columns, ipc.schema.names, self.extra_columns, self.path.name)
            produced = self._batches(ipc, columns, file)
            with streaming(produced, observer, file.verify, file.fingerprint, progress) as reading:
                yield reading

    def _batches(self, ipc: Any, columns: tuple[Column, ...], file: OpenedFile) -> Produced:
        from .rows import RowConverter

        converter = RowConverter(file.path.name, columns, [ipc.schema.field(column.name).type for column in columns])
        received = 0
        for batch in _each(ipc, file):
            received += batch.nbytes
            if received > self.max_bytes:
                raise too_large(file.path.name, self.max_bytes, unpacked=True)
            yield converter.convert([batch.column(column.name) for column in columns], batch.num_rows), received


@contextmanager
def _opened(file: OpenedFile) -> Iterator[Any]:
    """A reader of either format, through the descriptor whose fingerprint was taken."""
    import pyarrow as pa

    opens = pa.ipc.open_file if file.read_at(0, len(_FILE_MAGIC)) == _FILE_MAGIC else pa.ipc.open_stream
    with _sound(file):
        reader = opens(pa.OSFile(file.reopened()))
    with reader:
        yield reader


def _each(ipc: Any, file: OpenedFile) -> Iterator[Any]:
    number = 0
    while True:
        with _sound(file):
            batch = _next(ipc, number)
            if batch is not None:
                batch.validate(full=True)  # offsets out of bounds would be read as other memory
        if batch is None:
            return
        yield batch
        number += 1


def _next(ipc: Any, number: int) -> Any:
    if hasattr(ipc, "num_record_batches"):
        return ipc.get_batch(number) if number < ipc.num_record_batches else None
    try:
        return ipc.read_next_batch()
    except StopIteration:
        return None


@contextmanager
def _sound(file: OpenedFile) -> Iterator[None]:
    """Arrow's failures as ours: its messages may quote a value."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, EOFError) as error:
        raise file.unsound("Arrow IPC file or stream", error) from None
