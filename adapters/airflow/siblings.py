"""Mapped tasks that share a target: refused, with a sentence that says so, instead of one overwriting the other.

Task id and map index are recorded with every attempt and are no part of an identity. Two siblings for one process and
target therefore are one operation, and two for one target under different process names would publish over each other.
So a sibling is looked for before the work begins, and again with the append that begins it: the ledger refuses that
one when another process was first, and the next look sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING
from uuid import UUID

from ...domain import slot as slots
from ...domain.configuration import Process
from ...domain.errors import DponeError, ErrorCode
from ...domain.events import AttemptStarted, OperationAdmitted
from ...domain.identity import OperationKey, Task, operation_id, slot_id
from ...domain.ports import Ledger, Recorded, StreamAppend
from ..program.running import Request

if TYPE_CHECKING:
    from ..runtime.compose import Composer, Composition
    from ..runtime.settings import Settings


def refusing_siblings(request: Request, composer: Composer) -> Composer:
    """The composer, with a look for siblings around the ledger. A task that is not mapped has none."""
    task = request.task
    if task is None or task.map_index is None or task.task_id is None:
        return composer

    def composed(settings: Settings, process: Process) -> Composition:
        composition = composer(settings, process)
        try:
            watched = _watched(request, task, composition, process)
            watched.refuse_siblings()
        except BaseException:
            composition.close()
            raise
        return replace(composition, ports=replace(composition.ports, ledger=watched))

    return composed


def _watched(request: Request, task: Task, composition: Composition, process: Process) -> WatchedLedger:
    if request.dag_id is None or request.run_id is None:
        raise AssertionError("a task has both")
    sink, platform_id = process.sink, composition.platform_id
    key = OperationKey(request.dag_id, request.run_id, process.name, platform_id, sink.database, sink.table)
    return WatchedLedger(composition.ports.ledger, key, task.task_id, task.map_index)


@dataclass(frozen=True, slots=True)
class WatchedLedger:
    """Implements :class:`dpone.domain.ports.Ledger`: no attempt begins where a sibling was."""

    ledger: Ledger
    key: OperationKey
    task_id: str | None
    map_index: int | None

    def read(self, stream: UUID) -> Sequence[Recorded]:
        """As the ledger does."""
        return self.ledger.read(stream)

    def append(self, appends: Sequence[StreamAppend]) -> None:
        """As the ledger does. Raises DponeError (REQUEST_INVALID) in addition, before anything is stored."""
        if any(isinstance(event, AttemptStarted) for part in appends for event in part.events):
            self.refuse_siblings()
        self.ledger.append(appends)

    def refuse_siblings(self) -> None:
        """Raise DponeError (REQUEST_INVALID) when another element of this run's mapping worked on this target."""
        for stream in self._related():
            index = self._sibling(stream)
            if index is not None:
                raise _refused(self.key, index, self.map_index)

    def _related(self) -> Iterator[UUID]:
        """This operation, and whichever holds the target or published what is live there."""
        yield operation_id(self.key)
        recorded = self.ledger.read(slot_id(self.key.target))
        slot = reduce(slots.evolve, (item.event for item in recorded), slots.TargetSlot())
        if slot.holder is not None:
            yield UUID(slot.holder.operation)
        if slot.live is not None and not slot.live.adopted:
            yield UUID(slot.live.operation)

    def _sibling(self, stream: UUID) -> int | None:
        """The map index of another element of the same task and run whose attempt was the last one there."""
        events = [item.event for item in self.ledger.read(stream)]
        if not events or not isinstance(events[0], OperationAdmitted):
            return None
        theirs = events[0].key
        if (theirs.dag_id, theirs.run_id) != (self.key.dag_id, self.key.run_id):
            return None
        attempts = (event for event in reversed(events) if isinstance(event, AttemptStarted))
        last = next((attempt for attempt in attempts if attempt.task_id == self.task_id), None)
        if last is None or last.map_index in (None, self.map_index):
            return None
        return last.map_index


def _refused(key: OperationKey, theirs: int, ours: int | None) -> DponeError:
    first, second = sorted((theirs, ours or 0))
    return DponeError(
        ErrorCode.REQUEST_INVALID,
        f"Two mapped tasks of this run share one target: map indexes {first} and {second} both load "
        f"{key.database}.{key.table}.",
        safe="What the other one loaded stays; this one loaded nothing.",
        next="Give each element of the mapping a process with a target of its own.",
    )
