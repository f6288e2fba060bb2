"""A kept generation as a source: what a rollback reads, from where the target is.

The slot's history says which table it is, how it is built and how many rows it has. All three are checked: the table
by its identity on every replica, the rows by their number.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...domain import slot as slots
from ...domain.errors import ErrorCode, SourceFailed
from ...domain.identity import slot_id
from ...domain.limits import COUNT_MAX
from ...domain.ports import Ledger, Progress, RecordBatch, SourceReading, TargetPlatform
from ...domain.slot import Kept, TargetSlot
from ...domain.tables import Column, Metrics, Observation, TargetRef

if TYPE_CHECKING:
    from ..connections.connection import Connection

Rows = Callable[[Sequence[Column], Metrics, Progress], AbstractContextManager[SourceReading]]
"""Opens one read of the table's rows."""


class Exporting(Protocol):
    """The embedded platform, as far as it is needed here."""

    def export(self, database: str, name: str, selected: str, file: Path) -> None:
        """Write rows to an Arrow IPC file."""
        ...


@dataclass(frozen=True, slots=True)
class KeptSource:
    """The kept generation that bears ``name``."""

    ledger: Ledger
    platform: TargetPlatform
    target: TargetRef
    name: str
    rows: Rows

    def describe(self) -> tuple[Column, ...]:
        """The recorded columns. Raises SourceFailed when the table is not kept any more, or is another one."""
        return self._kept().definition.columns

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """All its rows, which must be as many as were recorded."""
        return self._read(columns, metrics, progress)

    @contextmanager
    def _read(self, columns: Sequence[Column], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        kept = self._kept()
        with self.rows(columns, metrics, progress) as reading:
            yield CountedReading(reading, kept.rows, self.name)

    def _kept(self) -> Kept:
        events = (item.event for item in self.ledger.read(slot_id(self.target)))
        slot = reduce(slots.evolve, events, TargetSlot())
        kept = next((one for one in slot.kept if self.name in one.names.values()), None)
        if kept is None:
            raise _unreadable(f"The table {self.name} is not kept any more.", "Choose another generation.")
        for look in self.platform.look(self.target):
            if kept.names.get(look.replica) != self.name:
                continue
            if not look.reachable:
                raise _unreadable(f"Replica {look.replica} does not answer.", "Repeat the same command.")
            if look.tables.get(self.name) != kept.identities[look.replica]:
                raise _unreadable(
                    f"The table {self.name} on replica {look.replica} is gone, or not the one that was kept.",
                    "Choose another generation.",
                )
        return kept


@dataclass(slots=True)
class CountedReading:
    """A reading that must yield exactly so many rows."""

    inner: SourceReading
    rows: int
    name: str

    def __iter__(self) -> Iterator[RecordBatch]:
        yield from self.inner
        if self.inner.observation.row_count != self.rows:
            raise SourceFailed(
                ErrorCode.SOURCE_CHANGED,
                f"The table {self.name} has {self.inner.observation.row_count:,} rows; {self.rows:,} were recorded.",
                safe="Nothing was published; the live table is untouched.",
                next="Choose another generation.",
            )

    @property
    def observation(self) -> Observation:
        return self.inner.observation

    @property
    def fingerprint(self) -> Mapping[str, str | int]:
        return self.inner.fingerprint


def server_rows(connection: Connection, database: str, name: str) -> Rows:
    """From the server of the target's own connection."""

    def opened(
        columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        from ..sources.clickhouse import ClickHouseSource

        return ClickHouseSource(connection, name, database, max_bytes=COUNT_MAX).read(columns, metrics, progress)

    return opened


def embedded_rows(platform: Any, database: str, name: str) -> Rows:
    """From the engine in this process: it writes its rows to a file first, because it does one thing at a time."""

    @contextmanager
    def opened(columns: Sequence[Column], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        from ..sources.observing import Observer
        from ..sources.reading import streaming

        observer = Observer(columns, metrics)
        with _exported(platform, database, name, columns) as file:
            produced = _batches(file, columns, name)
            with streaming(produced, observer, lambda: None, {"name": f"{database}.{name}"}, progress) as reading:
                yield reading

    return opened


@contextmanager
def _exported(platform: Exporting, database: str, name: str, columns: Sequence[Column]) -> Iterator[Any]:
    """The rows as an open Arrow file that has no name any more, so that nothing is left whatever happens."""
    from ..clickhouse.quoting import identifier
    from ..sources.clickhouse_types import travelling

    selected = []
    for column in columns:
        way = travelling(column.type)
        if way is None:
            raise _unreadable(f"A column of {name} has a type that is not carried.", "Choose another generation.")
        quoted = identifier(column.name)
        selected.append(f"{way.selects.format(quoted)} AS {quoted}")
    with tempfile.TemporaryDirectory(prefix="dpone-rollback-") as folder:
        path = Path(folder) / "rows.arrow"
        platform.export(database, name, ", ".join(selected), path)
        file = path.open("rb")
    with file:
        yield file


def _batches(file: Any, columns: Sequence[Column], name: str) -> Iterator[tuple[Any, int]]:
    import pyarrow as pa

    from ..sources.clickhouse_types import travelling
    from ..sources.clickhouse_values import from_server, kind_of
    from ..sources.rows import RowConverter

    ways = [way for column in columns if (way := travelling(column.type)) is not None]
    converter = RowConverter(name, columns, [kind_of(way) for way in ways], from_server)
    received = 0
    with pa.ipc.open_file(file) as ipc:
        for number in range(ipc.num_record_batches):
            batch = ipc.get_batch(number)
            received += batch.nbytes
            yield converter.convert(list(zip(ways, batch.columns, strict=True)), batch.num_rows), received


def _unreadable(what: str, next_: str) -> SourceFailed:
    return SourceFailed(
        ErrorCode.SOURCE_UNREADABLE, what, safe="Nothing was published; the live table is untouched.", next=next_
    )
