"""The composition root: settings in, ports out. Tests may hand the command line a composer of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ...domain.configuration import Process
from ...domain.ports import Clock, Ids, Progress, Reader, Source, SourceReading, TargetPlatform
from ...domain.tables import Column, Metrics, TargetRef
from .attempt import Ports
from .routes import check_route, is_embedded, kept_name
from .settings import Settings

if TYPE_CHECKING:
    from ...ledger.store import EventLedger


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        return time.monotonic()


class RandomIds:
    """Random UUIDs."""

    def new(self) -> str:
        return str(uuid4())


@dataclass(slots=True)
class DeferredSource:
    """A source that is bound when it is needed: recovery after the capsule needs neither its file nor its password."""

    bind: Callable[[], Source]
    bound: Source | None = None

    def describe(self) -> tuple[Column, ...]:
        return self._source().describe()

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        return self._source().read(columns, metrics, progress)

    def _source(self) -> Source:
        if self.bound is None:
            self.bound = self.bind()
        return self.bound


@dataclass(slots=True)
class Composition:
    """Everything that one process of a manifest needs, wired."""

    ports: Ports
    ledger: EventLedger
    platform_id: str

    def close(self) -> None:
        """Let go of everything, in the order that leaves no reader behind."""
        self.ports.reader.close()
        self.ports.platform.release()
        self.ledger.close()


Composer = Callable[[Settings, Process], Composition]


def compose(settings: Settings, process: Process) -> Composition:
    """Wire the route of this process. Raises DponeError for one that is not admitted."""
    check_route(process, settings)
    source = DeferredSource(lambda: source_of(process, settings))
    clock = SystemClock()
    composition = (
        _embedded(settings, source, clock) if is_embedded(process) else _cluster(settings, process, source, clock)
    )
    kept = kept_name(process)
    if kept is not None:
        composition.ports = replace(composition.ports, source=_kept(settings, process, kept, composition))
    return composition


def _kept(settings: Settings, process: Process, name: str, composition: Composition) -> Source:
    """A generation that the target's slot keeps: a rollback's source. Read from where the target is."""
    from .kept_source import KeptSource, embedded_rows, server_rows

    sink, platform = process.sink, composition.ports.platform
    target = TargetRef(composition.platform_id, sink.database, sink.table)
    if is_embedded(process):
        rows = embedded_rows(platform, sink.database, name)
    else:
        rows = server_rows(settings.connection(sink.connection_ref), sink.database, name)
    return KeptSource(composition.ledger, platform, target, name, rows)


def source_of(process: Process, settings: Settings) -> Source:
    """The source that the manifest describes. Raises DponeError for one that is not complete or not bound."""
    from ..sources.registry import SourceRequest, open_source

    spec = process.source
    options = dict(spec.options)
    extra = options.pop("extra_columns", "refuse")
    request = SourceRequest(
        type=spec.type.value,
        path=Path(spec.resolved_path) if spec.resolved_path is not None else None,
        table=spec.table.name if spec.table is not None else None,
        query=spec.query,
        options=options,
        declared=process.sink.columns,
        extra_columns=extra,
        max_bytes=process.sink.max_source_bytes,
        schema=spec.table.schema if spec.table is not None else None,
        connection=settings.connection(spec.connection_ref) if spec.connection_ref is not None else None,
    )
    return open_source(request)


def _embedded(settings: Settings, source: Source, clock: Clock) -> Composition:
    from ..clickhouse.embedded import EmbeddedPlatform
    from ..reader.process import ProcessReader
    from .provisioning import embedded_folder, open_provisioned

    ledger, marker = open_provisioned(settings.home, settings.ledger_url, clock)
    folder = embedded_folder(settings.home) / "data"
    platform: TargetPlatform = EmbeddedPlatform(folder)
    reader: Reader = ProcessReader(folder)
    ids: Ids = RandomIds()
    return Composition(Ports(ledger, source, platform, reader, clock, ids), ledger, marker.platform_id)


def _cluster(settings: Settings, process: Process, source: Source, clock: Clock) -> Composition:
    from ..authority.opening import open_cluster
    from ..cluster.platform import ReplicatedPlatform
    from ..reader.servers import ServerReader

    sink = process.sink
    if sink.cluster is None:
        raise AssertionError("check_route demands a cluster")
    connection = settings.connection(sink.connection_ref)
    opened = open_cluster(settings, connection, sink.cluster.name, sink.database)
    platform: TargetPlatform = ReplicatedPlatform(connection, opened.endpoints, opened.cluster, opened.platform_id)
    reader: Reader = ServerReader(connection, opened.endpoints)
    return Composition(
        Ports(opened.ledger, source, platform, reader, clock, RandomIds()), opened.ledger, opened.platform_id
    )
