"""PostgreSQL servers: one table, or one query that only reads, in one REPEATABLE READ, READ ONLY transaction.

All rows and everything that is counted come from that one snapshot, whatever others write meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...domain.limits import MAX_SOURCE_BYTES_DEFAULT
from ...domain.ports import Progress, SourceReading
from ...domain.tables import Column, Metrics
from ..connections.connection import Connection
from .declared import ExtraColumns, canonical, check_same_set
from .reading import Produced, streaming
from .refusals import declaration, shown, too_large
from .registry import SourceRequest

if TYPE_CHECKING:
    from .postgres_session import RowsSession, ServerColumn
    from .postgres_types import Travelling


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A table or a query of a server. Exactly one of ``table`` and ``query``.

    ``max_bytes`` bounds the columns' bytes in memory as they arrive.
    """

    connection: Connection
    table: str | None = None
    schema: str | None = None
    query: str | None = None
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT

    @classmethod
    def from_request(cls, request: SourceRequest) -> PostgresSource:
        """From a manifest's settings. Raises SourceFailed (DPONE_MANIFEST_INVALID)."""
        request.require_no_options()
        if (request.table is None) == (request.query is None):
            raise declaration("A PostgreSQL source reads either a table or a query.", "Give one of the two.")
        return cls(
            request.server(),
            request.table,
            request.schema,
            request.query,
            request.declared,
            request.extra_columns,
            request.max_bytes,
        )

    @property
    def _name(self) -> str:
        if self.query is not None:
            return "source.query"
        return f"{self.schema}.{self.table}" if self.schema else str(self.table)

    @property
    def _rows_of(self) -> str:
        from .postgres_session import quoted

        if self.query is not None:
            return f"({self.query.strip().removesuffix(';')}\n) AS dpone_rows"  # the line end closes a comment
        table = quoted(self.table or "")
        return f"{quoted(self.schema)}.{table}" if self.schema else table

    def describe(self) -> tuple[Column, ...]:
        """The declared columns, checked against the real ones; or types that hold the server's exactly."""
        real = self._columns()
        if self.declared is None:
            return tuple(self._proposed(column) for column in real)
        check_same_set(self.declared, [column.name for column in real], self.extra_columns, self._name)
        by_name = {column.name: column for column in real}
        for column in self.declared:
            self._way(by_name[column.name])
        return canonical(self.declared)

    def _columns(self) -> list[ServerColumn]:
        from .postgres_session import columns_of

        return columns_of(self.connection, self._rows_of, self._name, self.query is not None)

    def _proposed(self, column: ServerColumn) -> Column:
        kind = self._way(column).proposed
        if kind is None:
            raise declaration(
                f"Column {shown(column.name)} of {shown(self._name)} is numeric without precision and scale.",
                "Declare sink.columns, with Decimal(precision, scale) for it.",
            )
        return Column(column.name, f"Nullable({kind})" if column.nullable else str(kind))

    def _way(self, column: ServerColumn) -> Travelling:
        from .postgres_types import travelling

        way = travelling(column.type_name, column.is_enum)
        if way is None:
            raise declaration(
                f"Column {shown(column.name)} of {shown(self._name)} is {column.type_name[:60]}, which is not carried.",
                "Use source.query to turn it into another type, or declare sink.columns without it and set "
                "source.options.extra_columns: ignore.",
            )
        return way

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """Read all rows of one snapshot, convert to ``columns``."""
        return self._read(tuple(columns), metrics, progress)

    @contextmanager
    def _read(self, columns: tuple[Column, ...], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        from .observing import Observer
        from .postgres_session import RowsSession

        observer = Observer(columns, metrics)
        real = self._columns()
        check_same_set(columns, [column.name for column in real], self.extra_columns, self._name)
        by_name = {column.name: column for column in real}
        ways = [self._way(by_name[column.name]) for column in columns]
        with RowsSession.open(self.connection, self._name) as session:
            fingerprint: dict[str, str | int] = {
                "connection": self.connection.reference,
                "name": self._name,
                "snapshot": session.snapshot(),
            }
            produced = self._batches(session, columns, ways)
            with streaming(produced, observer, _one_snapshot, fingerprint, progress) as reading:
                try:
                    yield reading
                finally:
                    session.interrupt()  # a consumer that leaves early must not wait for a long query

    def _batches(self, session: RowsSession, columns: tuple[Column, ...], ways: Sequence[Travelling]) -> Produced:
        from .postgres_session import quoted
        from .postgres_types import from_server
        from .rows import RowConverter

        converter = RowConverter(self._name, columns, [way.kind for way in ways], from_server)
        names = ", ".join(way.selects.format(quoted(column.name)) for column, way in zip(columns, ways, strict=True))
        received = 0
        for batch in session.stream(f"SELECT {names} FROM {self._rows_of}", [way.arrives for way in ways]):
            received += batch.nbytes
            if received > self.max_bytes:
                raise too_large(self._name, self.max_bytes, unpacked=True)
            yield converter.convert(list(zip(ways, batch.columns, strict=True)), batch.num_rows), received


def _one_snapshot() -> None:
    """Nothing to compare: what others write meanwhile is outside of the snapshot."""
