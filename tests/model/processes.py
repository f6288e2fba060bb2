"""One process of the model: the real loop, wired to ports that stop before every call and suffer the armed faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dpone.adapters.runtime.attempt import Invocation, Ports, Running
from dpone.adapters.runtime.loop import run
from dpone.domain.errors import (
    AppendUnknown,
    EngineFailed,
    ErrorCode,
    LedgerFailed,
    ReaderFailed,
    SourceFailed,
)
from dpone.domain.events import AttemptStarted, By, CommitProven
from dpone.domain.identity import operation_id
from dpone.domain.ports import Progress, ReadPlan, ReadResult, Recorded, StreamAppend, Swap
from dpone.domain.steps import Request, Step
from dpone.domain.tables import Column, Metrics, Observation, ReplicaLook, TableDefinition, TableIdentity, TargetRef

from . import promises
from .commands import COLUMNS
from .scheduling import Stepped
from .statements import Statement
from .world import SLOT, Table, Violation, World

BATCHES = 2


class Process:
    """A started command. ``seen`` is what its last look showed, by replica; ``replicas`` those admitted at its start.

    As in a real process, whose connections are made once.
    """

    def __init__(self, world: World, name: str, request: Request, keep_generations: int) -> None:
        self.world, self.request = world, request
        self.seen: dict[str, Mapping[str, TableIdentity]] = {}
        self.holders: set[str] = set()
        self.retry_of_capsule: str | None = None
        self.appended_fence: int | None = None
        self.opens = 0
        self.slot_version = world.ledger.slot.version
        self.replicas = world.admitted
        if world.ledger.slot.holder is not None:
            self.holders.add(world.ledger.slot.holder.operation)
        self.running: Running | None = None
        self._keep = keep_generations
        self.stepped = Stepped(name, self._body)

    @property
    def name(self) -> str:
        return self.stepped.name

    @property
    def fence(self) -> int | None:
        return None if self.running is None else self.running.attempt.fence

    def advance(self, calls: int = 1) -> None:
        """Make so many calls; an ending is judged at once."""
        for _ in range(calls):
            if self.stepped.ended:
                return
            self.world.trace.append(f"{self.name}: {self.stepped.at}")
            if self.stepped.advance():
                self._ended()

    def advance_to(self, call: str) -> bool:
        """Go on until the process stands before such a call (at least one call is made) or ended."""
        self.advance()
        while not self.stepped.ended and call not in self.stepped.at:
            self.advance()
        return not self.stepped.ended

    def finish(self) -> None:
        """Run to the end."""
        calls = 0
        while not self.stepped.ended:
            self.advance()
            calls += 1
            if calls > 2_000:
                raise AssertionError(f"{self.name} does not end")

    def crash(self) -> None:
        self.world.trace.append(f"{self.name}: crashed before {self.stepped.at}")
        self.stepped.crash()

    def _ended(self) -> None:
        error = self.stepped.error
        self.world.trace.append(f"{self.name}: ended, {getattr(error, 'code', error)!s}")
        promises.check_ending(self)

    def _body(self, stepped: Stepped) -> None:
        ports = Ports(
            ledger=_Ledger(self),
            source=_Source(self),
            platform=_Platform(self),
            reader=_Reader(self),
            clock=Clock(),
            ids=_Ids(self.world),
        )
        by = By(os_user="ada", host=stepped.name, version="1.0.0")
        invocation = Invocation(by=by, keep_generations=self._keep, same_command="dpone run x")
        self.running = Running(ports, self.request, invocation, _Quiet())
        run(self.running)


class _Quiet:
    def step(self, step: Step) -> None:
        pass

    def rows(self, rows: int, source_bytes: int) -> None:
        pass

    def stop(self) -> None:
        pass


class Clock:
    def now(self) -> str:
        return "2026-01-02T03:04:05.000000Z"

    def monotonic(self) -> float:
        return 0.0


@dataclass(slots=True)
class _Ids:
    world: World

    def new(self) -> str:
        return str(UUID(int=self.world.number()))


@dataclass(slots=True)
class _Ledger:
    process: Process

    def read(self, stream: UUID) -> Sequence[Recorded]:
        self.process.stepped.stop("read slot" if stream == SLOT else "read operation")
        if self.process.world.fault("read"):
            raise LedgerFailed(ErrorCode.LEDGER_UNREACHABLE, "The ledger does not answer.")
        return self.process.world.ledger.read(stream)

    def append(self, appends: Sequence[StreamAppend]) -> None:
        names = "+".join(type(event).__name__ for item in appends for event in item.events)
        self.process.stepped.stop(f"append {names}")
        fault = self.process.world.fault("append")
        if fault == "lost":
            raise AppendUnknown(ErrorCode.LEDGER_UNREACHABLE, "The reply was lost.")
        before = self.process.world.ledger.operation(self.process.request.key)
        if not self.process.world.ledger.has_moved(appends):
            promises.check_append(self.process, appends)
        self.process.world.ledger.append(appends)
        for event in (event for item in appends for event in item.events):
            if isinstance(event, CommitProven):
                self.process.world.bereft -= event.identities.keys()
        own = operation_id(self.process.request.key)
        if any(isinstance(event, AttemptStarted) for item in appends if item.stream == own for event in item.events):
            sealed = before.generation if before.generation and before.generation.core else None
            self.process.retry_of_capsule = None if sealed is None else sealed.id
            self.process.appended_fence = self.process.world.ledger.operation(self.process.request.key).attempt
        if fault == "stored":
            raise AppendUnknown(ErrorCode.LEDGER_UNREACHABLE, "The reply was lost.")


class _Batch:
    def __init__(self, rows: int) -> None:
        self.num_rows = rows


@dataclass(slots=True)
class _Reading:
    process: Process
    rows: int
    fails: bool

    def __iter__(self) -> Iterator[_Batch]:
        for batch in range(BATCHES):
            self.process.stepped.stop(f"source batch {batch}")
            if self.fails:
                raise SourceFailed(ErrorCode.SOURCE_CHANGED, "The source changed.")
            yield _Batch(self.rows // BATCHES)

    @property
    def observation(self) -> Observation:
        return Observation(self.rows)

    @property
    def fingerprint(self) -> Mapping[str, str | int]:
        return {"name": "orders.csv"}


@dataclass(slots=True)
class _Source:
    process: Process

    def describe(self) -> tuple[Column, ...]:
        return COLUMNS

    @contextmanager
    def read(self, columns: Sequence[Column], metrics: Metrics, progress: Progress) -> Iterator[_Reading]:
        self.process.stepped.stop("open source")
        promises.check_open(self.process)
        self.process.opens += 1
        yield _Reading(self.process, self.process.world.rows, bool(self.process.world.fault("source")))


@dataclass(slots=True)
class _Reader:
    process: Process

    def warm(self, workers: int = 1) -> None:
        pass

    def observe(self, plan: ReadPlan) -> ReadResult:
        self.process.stepped.stop(f"reader {plan.table}")
        world = self.process.world
        replica = min(plan.identities)
        fault = world.fault("reader")
        table = None if replica in world.unreachable else world.tables[replica].get(plan.table)
        if fault or table is None or table.identity != plan.identities[replica]:
            raise ReaderFailed("No observation.", reaped=fault != "unreaped", fits=fault != "does not fit")
        return ReadResult(Observation(table.rows), replica, 5)

    def close(self) -> None:
        pass


def _broken(what: str) -> EngineFailed:
    return EngineFailed(ErrorCode.PUBLICATION_UNKNOWN, what, engine_code=999)


@dataclass(slots=True)
class _Platform:
    process: Process

    @property
    def world(self) -> World:
        return self.process.world

    @property
    def replicas(self) -> tuple[str, ...]:
        return self.process.replicas

    def prepare(self, database: str) -> None:
        return None

    def acquire(self) -> None:
        pass

    def release(self) -> None:
        pass

    def refusals(self, target: TargetRef, definition: TableDefinition) -> tuple[str, ...]:
        return ()

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        return tuple(self._look(replica) for replica in self.replicas)

    def _look(self, replica: str) -> ReplicaLook:
        self.process.stepped.stop(f"look {replica}")
        if replica in self.world.unreachable:
            return ReplicaLook(replica, reachable=False)
        seen = {name: table.identity for name, table in self.world.tables[replica].items()}
        self.process.seen[replica] = seen
        return ReplicaLook(replica, tables=seen)

    def exchanges(self, database: str) -> bool:
        return self.world.exchanges

    def synchronise(self, database: str, name: str) -> None:
        if not self.world.unreachable.isdisjoint(self.replicas):
            raise _broken("A replica does not answer.")

    def reported(self, candidate: str) -> Mapping[str, str]:
        return {}

    def rebuild(
        self, replica: str, database: str, name: str, definition: TableDefinition, identity: TableIdentity
    ) -> None:
        self.process.stepped.stop(f"rebuild {name} on {replica}")
        promises.check_destination(self.process, name)
        made = None if replica in self.world.unreachable else self.world.rebuild(replica, name, identity)
        if made is None:
            raise _broken("No good reply to CREATE.")
        self.process.stepped.stop(f"synchronise {name} on {replica}")
        copy = self.world.copy_of(replica, identity)
        if self.world.fault("rebuild") or copy is None or replica in self.world.unreachable:
            raise _broken("The replica is not synchronised.")
        made.rows, made.filled = copy.rows, True

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        self.process.stepped.stop(f"create {name}")
        promises.check_destination(self.process, name)
        fault = self.world.fault("create")
        if fault == "lost" or not self.world.unreachable.isdisjoint(self.replicas):
            raise _broken("No reply to CREATE.")
        identity = self.world.identity()
        for replica in self.replicas:
            if name in self.world.tables[replica]:
                raise Violation(f"{name} exists")
            self.world.create(replica, name, identity)
        if fault:
            raise _broken("No reply to CREATE.")

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[Any]) -> None:
        self.process.stepped.stop(f"fill {name}")
        tables = self._named(name)
        for batch in batches:
            if any(table.dropped for table in tables):
                raise _broken("The table is gone.")
            for table in tables:
                table.rows += batch.num_rows
        self.process.stepped.stop(f"filled {name}")
        if self.world.fault("fill"):
            raise _broken("No reply to INSERT.")
        for table in tables:
            table.filled = True

    def _named(self, name: str) -> list[Table]:
        found = [self.world.tables[replica].get(name) for replica in self.replicas]
        tables = [table for table in found if table is not None]
        if len(tables) != len(found):
            raise _broken("The table is gone.")
        return tables

    def observe(self, database: str, name: str, columns: Sequence[Column], metrics: Metrics) -> Observation:
        self.process.stepped.stop(f"count {name}")
        return Observation(self._named(name)[0].rows)

    def row_count(self, database: str, name: str) -> Mapping[str, int]:
        self.process.stepped.stop(f"row count {name}")
        return {replica: table.rows for replica, table in zip(self.replicas, self._named(name), strict=True)}

    def swap(self, swap: Swap) -> None:
        self.process.stepped.stop(f"swap {swap.candidate}")
        replicas = swap.replicas or self.world.replicas
        promises.check_touch(self.process, swap.table, replicas)
        promises.check_send(self.process, swap, replicas)
        fault = self.world.fault("swap")
        good = [
            self._send(Statement(replica, swap, not swap.replicas), index, fault)
            for index, replica in enumerate(replicas)
        ]
        if fault or not all(good):
            raise _broken("No good reply to the swap.")

    def _send(self, statement: Statement, index: int, fault: str) -> bool:
        fate = self.world.fates.pop(statement.replica, "")
        if not fate and fault in ("late", "twice", "lost"):
            fate = fault
        if not fate and fault == "partial" and index > 0:
            fate = "late"
        return self.world.send(statement, fate)

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        self.process.stepped.stop(f"rename {old} to {new} on {replica}")
        promises.check_touch(self.process, old, (replica,))
        promises.check_destination(self.process, new)
        fault = self.world.fault("rename")
        if replica in self.world.unreachable or fault == "lost" or not self.world.rename(replica, old, new) or fault:
            raise _broken("No good reply to RENAME.")

    def drop(self, replica: str, database: str, name: str, identity: TableIdentity) -> bool:
        self.process.stepped.stop(f"drop {name} on {replica}")
        fault = self.world.fault("drop")
        if fault == "refused" or replica in self.world.unreachable:
            raise _broken("The server refused to drop.")
        table = self.world.tables[replica].get(name)
        if table is None or table.identity != identity:
            return False
        promises.check_drop(self.process, replica, table)
        table.dropped = True
        del self.world.tables[replica][name]
        if fault:
            raise _broken("No reply to DROP.")
        return True
