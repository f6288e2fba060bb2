"""The production wiring with every port wrapped: each append and each effect is a named point that is recorded, and at
one of them something happens. A point is ``<what>#<n>:<before|after>``, n counting from 1; ``after`` means that it was
done and nobody heard. Filling has a third one, ``middle``.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.adapters.runtime import provisioning
from dpone.adapters.runtime.compose import Composition, compose
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from dpone.domain.errors import ReaderFailed
from dpone.domain.ports import (
    Progress,
    Reader,
    ReadPlan,
    ReadResult,
    RecordBatch,
    Source,
    SourceReading,
    StreamAppend,
    Swap,
    TargetPlatform,
)
from dpone.domain.tables import Column, Metrics, Observation, ReplicaLook, TableDefinition, TableIdentity, TargetRef
from dpone.ledger import store

T = TypeVar("T")
SLICE_ROWS = 100


@dataclass(slots=True)
class Points:
    """Where this process is: writes every point to the record, and acts at one of them.

    ``action``: ``kill``, ``freeze`` (until SIGCONT), ``sleep`` (a minute, as a slow disk would), or ``none``.
    """

    record: Path
    action: str = "none"
    at: str = ""
    seen: Counter[str] = field(default_factory=Counter)

    def around(self, what: str, work: Callable[[], T]) -> T:
        """Do the work between its two points."""
        self.seen[what] += 1
        name = f"{what}#{self.seen[what]}"
        self.reach(f"{name}:before")
        result = work()
        self.reach(f"{name}:after")
        return result

    def reach(self, point: str) -> None:
        self.note(f"point {point}")
        if point != self.at:
            return
        match self.action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "sleep":
                time.sleep(60)

    def note(self, line: str) -> None:
        """One line, in the file before the next thing happens."""
        with self.record.open("a") as file:
            file.write(f"{line}\n")


@dataclass(frozen=True, slots=True)
class RecordedSource:
    inner: Source
    points: Points

    def describe(self) -> tuple[Column, ...]:
        return self.inner.describe()

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        return self.points.around("read", lambda: self.inner.read(columns, metrics, progress))


@dataclass(slots=True)
class RecordedPlatform:
    """Notes also every change of what the target's name stands for: ``live <uuid or none>``."""

    inner: TargetPlatform
    points: Points
    slow_query: bool = False
    target: TargetRef | None = None
    live: str | None = None

    @property
    def replicas(self) -> tuple[str, ...]:
        return self.inner.replicas

    def prepare(self, database: str) -> None:
        self.inner.prepare(database)

    def acquire(self) -> None:
        self.inner.acquire()

    def release(self) -> None:
        self.inner.release()

    def refusals(self, target: TargetRef, definition: TableDefinition) -> tuple[str, ...]:
        return self.inner.refusals(target, definition)

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        looks = self.inner.look(target)
        if self.target is None:
            self.target = target
            self.live = self._live(looks)
            self.points.note(f"live {self.live}")
        return looks

    def exchanges(self, database: str) -> bool:
        return self.inner.exchanges(database)

    def synchronise(self, database: str, name: str) -> None:
        self.inner.synchronise(database, name)

    def reported(self, candidate: str) -> Mapping[str, str]:
        return self.inner.reported(candidate)

    def rebuild(
        self, replica: str, database: str, name: str, definition: TableDefinition, identity: TableIdentity
    ) -> None:
        self._effect("rebuild", lambda: self.inner.rebuild(replica, database, name, definition, identity))

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        self._effect("create", lambda: self.inner.create(database, name, definition))

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[RecordBatch]) -> None:
        self._effect("fill", lambda: self.inner.fill(database, name, columns, self._sliced(batches)))

    def observe(self, database: str, name: str, columns: Sequence[Column], metrics: Metrics) -> Observation:
        return self.points.around("count", lambda: self.inner.observe(database, name, columns, metrics))

    def row_count(self, database: str, name: str) -> Mapping[str, int]:
        if self.slow_query:
            self.points.note("slow query")
            run: Any = self.inner
            run._run("counting very slowly", "SELECT sum(cityHash64(number)) FROM numbers(1000000000000)")
        return self.inner.row_count(database, name)

    def swap(self, swap: Swap) -> None:
        self._effect("swap", lambda: self.inner.swap(swap))

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        self._effect("rename", lambda: self.inner.rename(replica, database, old, new))

    def drop(self, replica: str, database: str, name: str, identity: TableIdentity) -> bool:
        return self._effect("drop", lambda: self.inner.drop(replica, database, name, identity))

    def _effect(self, what: str, work: Callable[[], T]) -> T:
        def noted() -> T:
            result = work()
            if self.target is not None:
                live = self._live(self.inner.look(self.target))
                if live != self.live:
                    self.live = live
                    self.points.note(f"live {live}")
            return result

        return self.points.around(what, noted)

    def _live(self, looks: Sequence[ReplicaLook]) -> str | None:
        held = looks[0].tables.get(self.target.table) if self.target is not None else None
        return None if held is None else held.id

    def _sliced(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Small pieces, so that little data has a middle."""
        for batch in batches:
            for start in range(0, batch.num_rows, SLICE_ROWS):
                yield batch.slice(start, SLICE_ROWS)
                if start == 0:
                    self.points.reach(f"fill#{self.points.seen['fill']}:middle")


@dataclass(frozen=True, slots=True)
class RecordedReader:
    """``deaf`` never observes the target: it says that the budget ended."""

    inner: Reader
    points: Points
    deaf: bool = False

    def warm(self, workers: int = 1) -> None:
        self.inner.warm(workers)

    def observe(self, plan: ReadPlan) -> ReadResult:
        what = "observe-candidate" if plan.table.startswith("__dpone_") else "observe-target"
        return self.points.around(what, lambda: self._observe(plan, what))

    def close(self) -> None:
        self.inner.close()

    def _observe(self, plan: ReadPlan, what: str) -> ReadResult:
        if self.deaf and what == "observe-target":
            self.inner.close()
            raise ReaderFailed("The reader gave no observation: it did not finish within the budget.", reaped=True)
        return self.inner.observe(plan)


HASTY_SECONDS = 2.0


def composer(
    points: Points, *, deaf: bool = False, slow_query: bool = False, hasty: bool = False
) -> Callable[[Settings, Process], Composition]:
    """A composer for the command line that records, and acts at the point that was asked for.

    ``hasty`` waits two seconds for the engine's folder, where the program waits twenty.
    """
    _record_ledger(points)

    def composed(settings: Settings, process: Process) -> Composition:
        whole = compose(settings, process)
        ports = whole.ports
        if hasty and isinstance(ports.platform, EmbeddedPlatform):
            ports.platform._wait_seconds = HASTY_SECONDS
        whole.ports = replace(
            ports,
            source=RecordedSource(ports.source, points),
            platform=RecordedPlatform(ports.platform, points, slow_query),
            reader=RecordedReader(ports.reader, points, deaf),
        )
        return whole

    return composed


def _record_ledger(points: Points) -> None:
    """Wrap where the ledger is opened, so that provisioning's own appends and its marker file are points as well."""
    open_ledger, write_marker = store.open_ledger, provisioning._write_marker

    def opened(url: str, *, create: bool, **rest: Any) -> store.EventLedger:
        ledger = points.around("open-ledger", lambda: open_ledger(url, create=create, **rest))
        append = ledger.append

        def appended(appends: Sequence[StreamAppend]) -> None:
            points.around(f"append {_named(appends)}", lambda: append(appends))

        setattr(ledger, "append", appended)  # noqa: B010 - a method of one object is replaced
        return ledger

    def marked(folder: Path, marker: provisioning.Marker) -> provisioning.Marker:
        return points.around("write-marker", lambda: write_marker(folder, marker))

    setattr(store, "open_ledger", opened)  # noqa: B010
    setattr(provisioning, "_write_marker", marked)  # noqa: B010


def _named(appends: Sequence[StreamAppend]) -> str:
    names = [type(event).__name__ for part in appends for event in part.events]
    return "+".join(dict.fromkeys(names))
