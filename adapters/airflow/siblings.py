"""Mapped tasks that share a target: refused, with a sentence that says so, instead of one overwriting the other.

Task id and map index are recorded with every attempt and are no part of an identity. Two siblings for one process and
target therefore are one operation, and two for one target under different process names would publish over each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from ...domain.configuration import Process
from ...domain.errors import DponeError, ErrorCode
from ...domain.events import AttemptStarted, OperationAdmitted
from ...domain.identity import OperationKey, operation_id, slot_id
from ..program.outcome import Outcome
from ..program.running import Request

if TYPE_CHECKING:
    from ...domain.ports import Ledger
    from ..runtime.compose import Composer, Composition
    from ..runtime.settings import Settings

_CONTESTED = (ErrorCode.SUPERSEDED, ErrorCode.TARGET_BLOCKED, ErrorCode.ENGINE_BUSY, ErrorCode.RETIRED)


@dataclass(slots=True)
class SiblingCheck:
    """A composer that looks for siblings before it hands over the ports; ``found`` is the one that was seen."""

    request: Request
    composer: Composer
    found: DponeError | None = None
    _looked: list[tuple[Settings, Process]] = field(default_factory=list)

    def __call__(self, settings: Settings, process: Process) -> Composition:
        """Raises DponeError (REQUEST_INVALID) for a sibling that was here before."""
        composition = self.composer(settings, process)
        if self._is_mapped():
            try:
                self._look(composition, process)
            except BaseException:
                composition.close()
                raise
        self._looked.append((settings, process))
        return composition

    def look_again(self) -> DponeError | None:
        """Whether a sibling came in between. Never raises: this only explains."""
        if not self._is_mapped() or not self._looked:
            return None
        settings, process = self._looked[-1]
        try:
            composition = self.composer(settings, process)
        except DponeError:
            return None
        try:
            self._look(composition, process)
        except DponeError as error:
            return error if error.code is ErrorCode.REQUEST_INVALID else None
        finally:
            composition.close()
        return None

    def _is_mapped(self) -> bool:
        index = self.request.map_index
        return self.request.task_id is not None and index is not None and index >= 0

    def _look(self, composition: Composition, process: Process) -> None:
        request = self.request
        if request.dag_id is None or request.run_id is None:
            return
        sink = process.sink
        key = OperationKey(
            request.dag_id, request.run_id, process.name, composition.platform_id, sink.database, sink.table
        )
        for stream in _related(composition.ledger, key):
            index = self._sibling(composition.ledger, stream, key)
            if index is not None:
                raise _refused(process, index, request.map_index)

    def _sibling(self, ledger: Ledger, stream: UUID, key: OperationKey) -> int | None:
        """The map index of another mapped task of this run that worked on this operation."""
        events = [item.event for item in ledger.read(stream)]
        if not events or not isinstance(events[0], OperationAdmitted):
            return None
        theirs = events[0].key
        if (theirs.dag_id, theirs.run_id) != (key.dag_id, key.run_id):
            return None
        for event in reversed(events):
            if isinstance(event, AttemptStarted) and event.task_id == self.request.task_id:
                index = event.map_index
                return index if index is not None and index >= 0 and index != self.request.map_index else None
        return None


def refusing_siblings(request: Request, composer: Composer) -> SiblingCheck:
    """The composer with the check in front."""
    return SiblingCheck(request, composer)


def explained(outcome: Outcome, check: SiblingCheck) -> Outcome:
    """The outcome; one that lost a race against a sibling says that it was one."""
    failure = outcome.failure
    if failure is None or failure.code not in _CONTESTED:
        return outcome
    sibling = check.look_again()
    if sibling is None:
        return outcome
    told = (sibling.what, *failure.errors)
    result = {**outcome.document["result"], "errors": list(told)}
    return replace(outcome, failure=replace(failure, errors=told), document={**outcome.document, "result": result})


def _related(ledger: Ledger, key: OperationKey) -> Iterator[UUID]:
    """This operation, and whichever holds the target or published what is live there."""
    from functools import reduce

    from ...domain import slot as slots

    yield operation_id(key)
    slot = reduce(slots.evolve, (item.event for item in ledger.read(slot_id(key.target))), slots.TargetSlot())
    if slot.holder is not None:
        yield UUID(slot.holder.operation)
    if slot.live is not None and not slot.live.adopted:
        yield UUID(slot.live.operation)


def _refused(process: Process, theirs: int, ours: int | None) -> DponeError:
    sink = process.sink
    first, second = sorted((theirs, ours or 0))
    return DponeError(
        ErrorCode.REQUEST_INVALID,
        f"Two mapped tasks of this run share one target: map indexes {first} and {second} both load "
        f"{sink.database}.{sink.table}.",
        safe="What the other one loaded stays; this one read and changed nothing.",
        next="Give each element of the mapping a process with a target of its own.",
    )
