"""ClickHouse servers over the native protocol: one table, or one query that only reads.

All rows come from one SELECT, for which the server takes the table's parts at its start. The set of active parts is
looked at before and after: a difference is DPONE_SOURCE_CHANGED. A table that fits into two blocks is read again in
that case, up to three times; of a larger one rows have been handed over by then. A query's tables, views, and engines
without parts (Log, Memory, Distributed, …) cannot be compared: there the one SELECT is the only guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from ...domain.limits import MAX_SOURCE_BYTES_DEFAULT
from ...domain.ports import Progress, SourceReading
from ...domain.tables import Column, Metrics
from ..connections.connection import Connection
from .declared import ExtraColumns, canonical, check_same_set
from .reading import Produced, streaming
from .refusals import changed, declaration, shown, too_large
from .registry import SourceRequest

if TYPE_CHECKING:
    from .clickhouse_parts import Parts
    from .clickhouse_session import ServerSession
    from .clickhouse_types import Travelling

READS_MAX = 3


@dataclass(frozen=True, slots=True)
class ClickHouseSource:
    """A table or a query of a server. Exactly one of ``table`` and ``query``.

    ``max_bytes`` bounds the columns' bytes in memory, uncompressed, as they arrive.
    """

    connection: Connection
    table: str | None = None
    database: str | None = None
    query: str | None = None
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT

    @classmethod
    def from_request(cls, request: SourceRequest) -> ClickHouseSource:
        """From a manifest's settings. Raises SourceFailed (DPONE_MANIFEST_INVALID)."""
        request.require_no_options()
        if (request.table is None) == (request.query is None):
            raise declaration("A ClickHouse source reads either a table or a query.", "Give one of the two.")
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
    def _database(self) -> str:
        return self.database or self.connection.database or "default"

    @property
    def _name(self) -> str:
        return "source.query" if self.query is not None else f"{self._database}.{self.table}"

    def describe(self) -> tuple[Column, ...]:
        """The declared columns, checked against the real ones; or types that hold the server's exactly."""
        from .clickhouse_session import ServerSession

        with ServerSession.open(self.connection) as session:
            real = self._columns(session)
        if self.declared is None:
            ways = [self._way(column) for column in real]
            self._refuse_expressions(real, ways)
            return tuple(Column(column.name, str(way.proposed)) for column, way in zip(real, ways, strict=True))
        check_same_set(self.declared, [column.name for column in real], self.extra_columns, self._name)
        by_name = {column.name: column for column in real}
        self._refuse_expressions(real, [self._way(by_name[column.name]) for column in self.declared])
        return canonical(self.declared)

    def _columns(self, session: ServerSession) -> list[Column]:
        if self.query is not None:
            return session.query_columns(_one_select(self.query))
        return session.table_columns(self._database, self.table or "")

    def _way(self, column: Column) -> Travelling:
        from .clickhouse_types import travelling

        way = travelling(column.type)
        if way is None:
            raise declaration(
                f"Column {shown(column.name)} of {shown(self._name)} is {column.type[:60]}, which is not carried.",
                "Use source.query to turn it into another type, or declare sink.columns without it and set "
                "source.options.extra_columns: ignore.",
            )
        return way

    def _refuse_expressions(self, real: Sequence[Column], ways: Sequence[Travelling]) -> None:
        """A column called ``toString(x)`` would be taken for the result of that function on column ``x``."""
        functions = {way.selects.partition("(")[0] + "(" for way in ways if way.selects != "{}"}
        for column in real:
            if column.name.startswith(tuple(functions)):
                raise declaration(
                    f"Column {shown(column.name)} of {shown(self._name)} has the name of an expression.",
                    "Give it another name (AS …) in source.query.",
                )

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """Read all rows by one SELECT, convert to ``columns``."""
        return self._read(tuple(columns), metrics, progress)

    @contextmanager
    def _read(self, columns: tuple[Column, ...], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        from .clickhouse_session import ServerSession
        from .observing import Observer

        observer = Observer(columns, metrics)
        with ServerSession.open(self.connection) as session:
            real = self._columns(session)
            check_same_set(columns, [column.name for column in real], self.extra_columns, self._name)
            by_name = {column.name: column for column in real}
            ways = [self._way(by_name[column.name]) for column in columns]
            self._refuse_expressions(real, ways)
            fingerprint: dict[str, str | int] = {"connection": self.connection.reference, "name": self._name}
            produced = self._unchanged(session, columns, ways, fingerprint)
            with streaming(produced, observer, _verified_already, fingerprint, progress) as reading:
                try:
                    yield reading
                finally:
                    session.interrupt()  # a consumer that leaves early must not wait for a long query

    def _unchanged(
        self,
        session: ServerSession,
        columns: tuple[Column, ...],
        ways: Sequence[Travelling],
        fingerprint: dict[str, str | int],
    ) -> Produced:
        for read in range(1, READS_MAX + 1):
            before = self._parts(session)
            batches = self._batches(session, columns, ways)
            held = [batch for batch in (next(batches, None), next(batches, None)) if batch is not None]
            if len(held) < 2 and read < READS_MAX and not self._same(session, before):
                continue  # nothing was handed over: read again
            yield from chain(held, batches)
            if not self._same(session, before):
                raise changed(self._name)
            fingerprint |= before.fingerprint if before is not None else {}
            return

    def _parts(self, session: ServerSession) -> Parts | None:
        return None if self.query is not None else session.parts(self._database, self.table or "")

    def _same(self, session: ServerSession, before: Parts | None) -> bool:
        now = self._parts(session)
        return before is now is None or (before is not None and now is not None and before.same_rows(now))

    def _batches(self, session: ServerSession, columns: tuple[Column, ...], ways: Sequence[Travelling]) -> Produced:
        from .clickhouse_session import selected
        from .clickhouse_values import from_server, kind_of
        from .rows import RowConverter

        converter = RowConverter(self._name, columns, [kind_of(way) for way in ways], from_server)
        names = selected([(column.name, way.selects) for column, way in zip(columns, ways, strict=True)])
        received = 0
        for batch in session.stream(f"SELECT {names} FROM {self._rows_of()}", self._name, len(columns)):
            received += batch.nbytes
            if received > self.max_bytes:
                raise too_large(self._name, self.max_bytes, unpacked=True)
            arrays = list(zip(ways, batch.columns, strict=True))
            yield converter.convert(arrays, batch.num_rows), received

    def _rows_of(self) -> str:
        from ..clickhouse.quoting import table_name

        if self.query is not None:
            return f"({_one_select(self.query)}\n)"  # the line end closes a comment
        return table_name(self._database, self.table or "")


def _one_select(query: str) -> str:
    return query.strip().removesuffix(";")


def _verified_already() -> None:
    """The parts are compared on the reading thread, on the connection that read them."""
