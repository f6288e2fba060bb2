"""Runtime dependencies to inject into the command line: two replicas of tables in memory, a source of three rows.

The ledger is a real SQLite store. Nothing here stands for a server's behaviour under faults: that is what the model and
the tests on real servers are for. This is for the boundary: what is asked of the runtime, and what is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from dpone.adapters.runtime.attempt import Ports
from dpone.adapters.runtime.compose import Composition, RandomIds, SystemClock
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from dpone.domain.ports import Progress, ReadPlan, ReadResult, Swap
from dpone.domain.tables import Column, Metrics, Observation, ReplicaLook, TableDefinition, TableIdentity, TargetRef
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger

REPLICAS = ("replica-1", "replica-2")
ROWS = 3
PLATFORM_ID = "5c1f0f6e-6a4b-4c35-9a55-0d1c5f0c7f11"


class Batch:
    """As much of a record batch as the runtime looks at."""

    num_rows = ROWS


@dataclass
class MemorySource:
    """Three rows of ``record_id``; ``opens`` counts the reads."""

    opens: int = 0

    def describe(self) -> tuple[Column, ...]:
        return (Column("record_id", "UInt64"), Column("note", "Nullable(String)"))

    @contextmanager
    def read(self, columns: Sequence[Column], metrics: Metrics, progress: Progress) -> Iterator[MemoryReading]:
        self.opens += 1
        yield MemoryReading(_observation(metrics))


@dataclass
class MemoryReading:
    """One read."""

    observation: Observation
    fingerprint: Mapping[str, str | int] = field(default_factory=lambda: {"name": "source.records"})

    def __iter__(self) -> Iterator[Batch]:
        yield Batch()


@dataclass
class MemoryPlatform:
    """Tables by name, the same on each replica; ``swaps`` holds what was sent."""

    tables: dict[str, TableIdentity] = field(default_factory=dict)
    swaps: list[Swap] = field(default_factory=list)
    replicas: tuple[str, ...] = REPLICAS

    def prepare(self, database: str) -> None:
        return None

    def acquire(self) -> None:
        return None

    def release(self) -> None:
        return None

    def refusals(self, target: TargetRef, definition: TableDefinition) -> tuple[str, ...]:
        return ()

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        return tuple(ReplicaLook(replica, tables=dict(self.tables)) for replica in self.replicas)

    def exchanges(self, database: str) -> bool:
        return True

    def synchronise(self, database: str, name: str) -> None:
        return None

    def reported(self, candidate: str) -> Mapping[str, str]:
        return {}

    def rebuild(
        self, replica: str, database: str, name: str, definition: TableDefinition, identity: TableIdentity
    ) -> None:
        raise AssertionError("nothing is ever lost here")

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        self.tables[name] = TableIdentity(str(uuid4()), "sha256:" + "0" * 64)

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[Any]) -> None:
        for _ in batches:
            continue

    def observe(self, database: str, name: str, columns: Sequence[Column], metrics: Metrics) -> Observation:
        return _observation(metrics)

    def row_count(self, database: str, name: str) -> Mapping[str, int]:
        return dict.fromkeys(self.replicas, ROWS)

    def swap(self, swap: Swap) -> None:
        self.swaps.append(swap)
        live = self.tables.pop(swap.table, None)
        self.tables[swap.table] = self.tables.pop(swap.candidate)
        if live is not None:
            self.tables[swap.candidate] = live

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        if old in self.tables:
            self.tables[new] = self.tables.pop(old)

    def drop(self, replica: str, database: str, name: str, identity: TableIdentity) -> bool:
        return self.tables.get(name) == identity and self.tables.pop(name, None) is not None


class MemoryReader:
    """Answers at once."""

    def warm(self, workers: int = 1) -> None:
        return None

    def observe(self, plan: ReadPlan) -> ReadResult:
        return ReadResult(_observation(plan.metrics), REPLICAS[0], 1)

    def close(self) -> None:
        return None


@dataclass
class Injected:
    """A composer with the dependencies it injects; it lives as long as a test, over several commands."""

    folder: Path
    source: MemorySource = field(default_factory=MemorySource)
    platform: MemoryPlatform = field(default_factory=MemoryPlatform)
    processes: list[Process] = field(default_factory=list)

    @property
    def ledger_url(self) -> str:
        return sqlite_url(self.folder / "ledger.sqlite")

    def __call__(self, settings: Settings, process: Process) -> Composition:
        self.processes.append(process)
        ledger = open_ledger(self.ledger_url, create=True)
        ports = Ports(ledger, self.source, self.platform, MemoryReader(), SystemClock(), RandomIds())
        return Composition(ports, ledger, PLATFORM_ID)


def _observation(metrics: Metrics) -> Observation:
    return Observation(
        ROWS,
        dict.fromkeys(metrics.null_counts, 0),
        dict.fromkeys(metrics.distinct_counts, ROWS),
        f"v1:{ROWS}:42" if metrics.typed_hash else None,
    )
