"""One process working on one operation: its view of both streams, and the appends that move it on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol
from uuid import UUID

from ...domain import operation as operations
from ...domain import slot as slots
from ...domain.errors import AppendConflict, DponeError, ErrorCode, IllegalTransition, ReaderFailed
from ...domain.events import By, Event
from ...domain.generation import Generation, Publication
from ...domain.identity import NO_TASK, Task, operation_id, slot_id
from ...domain.operation import Operation
from ...domain.ports import Clock, Ids, Ledger, Reader, Source, StreamAppend, TargetPlatform
from ...domain.publication import Expectation
from ...domain.slot import TargetSlot
from ...domain.steps import Attempt, Request, Step, superseded
from ...domain.tables import TableDefinition, TableIdentity


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside, wired once by the composition root."""

    ledger: Ledger
    source: Source
    platform: TargetPlatform
    reader: Reader
    clock: Clock
    ids: Ids


@dataclass(frozen=True, slots=True)
class Invocation:
    """What is recorded about this process, and what may differ between two runs of one operation."""

    by: By
    keep_generations: int
    same_command: str
    manifest_sha256: str | None = None
    revision: str | None = None
    task: Task = NO_TASK


class Reporter(Protocol):
    """Told what happens while it happens; shows it to a person or keeps quiet."""

    def step(self, step: Step) -> None:
        """The next step begins."""
        ...

    def rows(self, rows: int, source_bytes: int) -> None:
        """So many rows were read so far."""
        ...

    def stop(self) -> None:
        """Nothing more will come."""
        ...


@dataclass(slots=True)
class Counters:
    """What this invocation did itself: zero on a replay."""

    extracted_rows: int = 0
    inserted_rows: int = 0
    final_rows: int = 0
    swaps_sent: int = 0


@dataclass(slots=True)
class Running:
    """The attempt's state: its last rebuild plus its own events, never somebody else's."""

    ports: Ports
    request: Request
    invocation: Invocation
    report: Reporter
    attempt: Attempt = field(default_factory=Attempt)
    operation: Operation = field(default_factory=Operation)
    slot: TargetSlot = field(default_factory=TargetSlot)
    holder: Operation | None = None
    counters: Counters = field(default_factory=Counters)
    definition: TableDefinition | None = None
    source_schema: str = ""

    @property
    def operation_stream(self) -> UUID:
        return operation_id(self.request.key)

    @property
    def slot_stream(self) -> UUID:
        return slot_id(self.request.key.target)

    @property
    def fence(self) -> int:
        """The fence that this process appended itself."""
        if self.attempt.fence is None:
            raise defect("a step was performed before its attempt started")
        return self.attempt.fence

    @property
    def generation(self) -> Generation:
        if self.operation.generation is None:
            raise defect("a step needs a generation")
        return self.operation.generation

    @property
    def publication(self) -> Publication:
        if self.operation.publication is None:
            raise defect("a step needs a publication")
        return self.operation.publication

    @property
    def admitted(self) -> tuple[str, ...]:
        """The replicas that this process was wired to, minus those excluded since: the slot is told of every change."""
        known = self.slot.inventory
        return tuple(replica for replica in self.ports.platform.replicas if known is None or replica in known)

    @property
    def replicas(self) -> tuple[str, ...]:
        """The replicas that the operation speaks of: its own inventory, minus those excluded since."""
        admitted = self.admitted
        return tuple(replica for replica in self.operation.inventory if replica in admitted)

    def identities(self) -> dict[str, TableIdentity]:
        """The generation's table on each replica that the operation speaks of."""
        known = self.generation.identities or {}
        return {replica: known[replica] for replica in self.replicas if replica in known}

    def now(self) -> str:
        return self.ports.clock.now()

    def rebuild(self) -> None:
        """Read the head of the streams: the only place where another process's events are adopted."""
        self.operation = operations.fold(self._events(self.operation_stream))
        self.slot = reduce(slots.evolve, self._events(self.slot_stream), TargetSlot())
        self.holder = None
        holder = self.slot.holder
        if holder is not None and holder.operation != str(self.operation_stream):
            self.holder = operations.fold(self._events(UUID(holder.operation)))

    def append(
        self,
        events: Sequence[Event],
        slot_events: Sequence[Event] = (),
        others: Sequence[StreamAppend] = (),
    ) -> None:
        """Store the events in one append and take them into the view. Folded first: nothing illegal is stored."""
        try:
            operation = reduce(operations.evolve, events, self.operation)
            slot = reduce(slots.evolve, slot_events, self.slot)
        except IllegalTransition:
            self.check_view_is_current()  # two streams read one after the other may not fit each other
            raise
        appends = [*others]
        if events:
            appends.append(StreamAppend(self.operation_stream, self.operation.version, tuple(events)))
        if slot_events:
            appends.append(StreamAppend(self.slot_stream, self.slot.version, tuple(slot_events)))
        self.ports.ledger.append(appends)
        self.operation, self.slot = operation, slot

    def warm_reader(self, workers: int = 1) -> None:
        """Start readers early, beside other work. A mere head start: when it fails, observing says why."""
        with suppress(ReaderFailed):
            self.ports.reader.warm(workers)

    def started(self) -> None:
        """Take the fence from this process's own append, never from the head: a lost reply could hide a newer one."""
        self.attempt = replace(self.attempt, fence=self.operation.attempt)

    def check_not_superseded(self) -> None:
        """Before a stop that a look led to is reported: a higher fence means that the look is out of date.

        Raises SUPERSEDED, or AppendConflict when the stream has moved on otherwise: the loop rebuilds and asks again.
        """
        head = operations.fold(self._events(self.operation_stream))
        if self.attempt.fence is not None and head.attempt > self.attempt.fence:
            raise superseded(head)
        if head.version != self.operation.version:
            raise AppendConflict

    def check_view_is_current(self) -> None:
        """Before a refusal is reported: all streams still stand where it was decided, or it may not be true."""
        self.check_not_superseded()
        if len(self.ports.ledger.read(self.slot_stream)) != self.slot.version:
            raise AppendConflict
        held = self.slot.holder
        if self.holder is None or held is None:
            return
        if len(self.ports.ledger.read(UUID(held.operation))) != self.holder.version:
            raise AppendConflict  # the holder moves its own stream alone: what looked strange may be its publication

    def expectation(self) -> Expectation:
        """The publication as the ledger knows it; before dispatch the predecessor is the slot's live generation."""
        publication = self.operation.publication
        if publication is not None:
            predecessor = publication.predecessor
        else:
            predecessor = self.slot.live.identities if self.slot.live is not None else {}
        return Expectation(self.request.key.table, self.generation.id, self.identities(), predecessor)

    def _events(self, stream: UUID) -> Iterable[Event]:
        return (recorded.event for recorded in self.ports.ledger.read(stream))


def defect(what: str) -> DponeError:
    """A condition that the product's own order should have excluded."""
    return DponeError(
        ErrorCode.INTERNAL, f"Internal defect: {what}.", safe="Nothing was done after it.", next="Report it, please."
    )
