"""The composition root: settings in, ports out. Tests may hand the command line a composer of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ...domain.configuration import EMBEDDED, Process
from ...domain.errors import DponeError, ErrorCode
from ...domain.ports import Clock, Ids, Progress, Reader, Source, SourceReading, TargetPlatform
from ...domain.tables import Column, Metrics
from .attempt import Ports
from .provisioning import Marker, embedded_folder, open_provisioned
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
    """Wire the embedded route. Raises DponeError for a route that this release does not have."""
    check_route(process, settings)
    source = DeferredSource(lambda: source_of(process, settings))
    clock = SystemClock()
    ledger, marker = open_provisioned(settings.home, settings.ledger_url, clock)
    return Composition(_ports(settings, source, ledger, marker, clock), ledger, marker.platform_id)


def check_route(process: Process, settings: Settings) -> None:
    """Refuse what this release cannot carry, before anything is opened."""
    sink = process.sink
    if sink.connection_ref != EMBEDDED or sink.cluster is not None:
        raise _unsupported(
            f"The target connection {sink.connection_ref!r} is a ClickHouse server or cluster; this release publishes "
            "to the embedded engine only.",
            "Set sink.connection_ref to embedded.",
        )
    if sink.staging_database not in (None, sink.database):
        raise _unsupported("Candidates stand in the target's own database.", "Leave sink.staging out.")
    if sink.lineage:
        raise _unsupported("Lineage columns are not available in this release.", "Set sink.options.lineage to false.")
    if not settings.ledger_url.startswith("sqlite://"):
        raise DponeError(
            ErrorCode.REQUEST_INVALID,
            "This kind of ledger is not available in this release.",
            next="Use --ledger sqlite:///absolute/path/ledger.sqlite",
        )


def source_of(process: Process, settings: Settings) -> Source:
    """The source that the manifest describes. Raises DponeError for one that is not complete or not bound."""
    from ..connections.resolving import resolve
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
        connection=resolve(spec.connection_ref, settings.environ) if spec.connection_ref is not None else None,
    )
    return open_source(request)


def _ports(settings: Settings, source: Source, ledger: EventLedger, marker: Marker, clock: Clock) -> Ports:
    from ..clickhouse.embedded import EmbeddedPlatform
    from ..reader.process import ProcessReader

    folder = embedded_folder(settings.home) / "data"
    platform: TargetPlatform = EmbeddedPlatform(folder)
    reader: Reader = ProcessReader(folder)
    ids: Ids = RandomIds()
    return Ports(ledger, source, platform, reader, clock, ids)


def _unsupported(what: str, next_: str) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_UNSUPPORTED, what, safe="Nothing was read or changed.", next=next_, exit_code=2
    )
