"""SQLite databases: one table, or one query that only reads, in one read transaction.

SQLite keeps values of any class in any column, so each value is checked by itself. INTEGER is taken for whole numbers,
Bool (0 or 1), Float and Decimal where exact; REAL for floats, and for whole numbers and Decimal where exact; TEXT and
BLOB for String; TEXT for dates, times, UUID and Decimal in the forms of :mod:`.texts`. Anything else is refused with
its row number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...domain.limits import MAX_SOURCE_BYTES_DEFAULT
from ...domain.ports import Progress, SourceReading
from ...domain.tables import Column, Metrics
from .declared import ExtraColumns, canonical, check_same_set, parsed
from .files import OpenedFile
from .reading import Produced, streaming
from .refusals import declaration
from .registry import SourceRequest
from .sqlite_query import (
    VIEW,
    Columns,
    columns_of,
    describe_query,
    describe_table,
    failing,
    opened,
    quoted,
    reading_only,
)


@dataclass(frozen=True, slots=True)
class SqliteSource:
    """A table or a query of an SQLite file. Exactly one of ``table`` and ``query``. ``max_bytes`` bounds the file."""

    path: Path
    table: str | None = None
    query: str | None = None
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT

    @classmethod
    def from_request(cls, request: SourceRequest) -> SqliteSource:
        """From a manifest's settings. Raises SourceFailed (DPONE_MANIFEST_INVALID)."""
        request.require_no_options()
        if (request.table is None) == (request.query is None):
            raise declaration("An SQLite source reads either a table or a query.", "Give one of the two.")
        return cls(
            request.file_path(),
            request.table,
            request.query,
            request.declared,
            request.extra_columns,
            request.max_bytes,
        )

    def describe(self) -> tuple[Column, ...]:
        """The declared columns, checked against the real ones; or types proposed from the declared SQL types."""
        OpenedFile.look(self.path, self.max_bytes)
        with opened(self.path) as connection:
            columns = self._columns(connection)
        if self.declared is None:
            return columns.proposed(self.path.name)
        check_same_set(self.declared, columns.names, self.extra_columns, self.path.name)
        return canonical(self.declared)

    def _columns(self, connection: sqlite3.Connection) -> Columns:
        if self.query is not None:
            return describe_query(connection, self.query, self.path.name)
        return describe_table(connection, self.table or "", self.path.name)

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """Read all rows in one transaction, convert to ``columns``."""
        return self._read(tuple(columns), metrics, progress)

    @contextmanager
    def _read(self, columns: tuple[Column, ...], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        from .observing import Observer

        observer = Observer(columns, metrics)
        file = OpenedFile.look(self.path, self.max_bytes)
        with opened(self.path) as connection:
            check_same_set(columns, self._columns(connection).names, self.extra_columns, self.path.name)
            with failing(self.path.name):
                logged = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            # A write-ahead log lets others write beside this transaction, which goes on seeing one state: then only
            # another file under the same name is a change. Otherwise nothing can be written while it is read.
            verify = file.verify_same if logged else file.verify
            with reading_only(connection, self.path.name):
                produced = self._batches(connection, columns, file.size)
                with streaming(produced, observer, verify, file.fingerprint, progress) as reading:
                    try:
                        yield reading
                    finally:
                        connection.interrupt()  # a consumer that leaves early must not wait for a long query

    def _batches(self, connection: sqlite3.Connection, columns: tuple[Column, ...], size: int) -> Produced:
        from .pythons import carried_kind, from_python
        from .rows import RowConverter

        kinds = [carried_kind(target) for target in parsed(columns)]
        converter = RowConverter(self.path.name, columns, kinds, from_python)
        names = ", ".join(quoted(column.name) for column in columns)
        rows_of = VIEW if self.query is not None else f"main.{quoted(self.table or '')}"
        with failing(self.path.name):
            for arrays in columns_of(connection, f"SELECT {names} FROM {rows_of}", self.path.name):
                yield converter.convert(arrays, len(arrays[0])), size
