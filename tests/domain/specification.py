"""Given these events, when this happens or is asked, then that: the form in which the decisions are tested.

    given(*UNTIL[State.COMMITTED]).when(pending()).then(State.TARGET_PENDING)
    given(*UNTIL[State.COMMITTED]).when(completed()).then_illegal()
    given(*UNTIL[State.PREPARED], slot=HELD).when_asked(attempt=1).then_step(Dispatch())
    given(slot=HELD).when_asked(request(OTHER_DAG)).then_refused(ErrorCode.TARGET_BLOCKED, "night")

``when`` folds events; ``when_asked`` asks ``next_step``. What must not happen is asserted too: a refusal is a step like
any other, and an event that is out of place must raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pytest

from dpone.domain import operation as operations
from dpone.domain import slot as slots
from dpone.domain.errors import ErrorCode, IllegalTransition
from dpone.domain.events import Event
from dpone.domain.operation import Operation, State
from dpone.domain.slot import TargetSlot
from dpone.domain.steps import Attempt, Refuse, Request, Step, next_step

from .examples import request


@dataclass(frozen=True, slots=True)
class Specification:
    """What happened so far: the operation's own events, its slot's, and those of the slot's other holder."""

    own: tuple[Event, ...]
    slot: tuple[Event, ...]
    holder: tuple[Event, ...] | None

    def when(self, *events: Event) -> Happened:
        """These events follow in the operation's own stream."""
        return Happened(self.own, events)

    def when_in_slot(self, *events: Event) -> HappenedInSlot:
        """These events follow in the slot's stream."""
        return HappenedInSlot(self.slot, events)

    def when_asked(
        self, asked: Request | None = None, *, attempt: int | None = None, deferred: tuple[str, ...] = ()
    ) -> Asked:
        """A process asks what comes next; ``attempt`` is the fence that it appended, None before it did."""
        slot = reduce(slots.evolve, self.slot, TargetSlot())
        holder = None if self.holder is None else operations.fold(self.holder)
        operation = operations.fold(self.own)
        return Asked(next_step(operation, slot, holder, asked or request(), Attempt(attempt, frozenset(deferred))))


@dataclass(frozen=True, slots=True)
class Happened:
    """Events were appended to the operation."""

    before: tuple[Event, ...]
    events: tuple[Event, ...]

    def then(self, state: State) -> Operation:
        """The operation stands here; it is returned for a closer look."""
        operation = operations.fold((*self.before, *self.events))
        assert operation.state is state
        assert operation.version == len(self.before) + len(self.events)
        return operation

    def then_legal(self) -> None:
        """The events fit, wherever they lead."""
        operations.fold((*self.before, *self.events))

    def then_illegal(self, why: str | None = None) -> None:
        """The last event is refused, and the ones before it are not."""
        operation = operations.fold((*self.before, *self.events[:-1]))
        with pytest.raises(IllegalTransition, match=why):
            operations.evolve(operation, self.events[-1])


@dataclass(frozen=True, slots=True)
class HappenedInSlot:
    """Events were appended to the slot."""

    before: tuple[Event, ...]
    events: tuple[Event, ...]

    def then(self) -> TargetSlot:
        """They are legal; the slot is returned for a closer look."""
        return reduce(slots.evolve, (*self.before, *self.events), TargetSlot())

    def then_illegal(self, why: str | None = None) -> None:
        """The last event is refused, and the ones before it are not."""
        slot = reduce(slots.evolve, (*self.before, *self.events[:-1]), TargetSlot())
        with pytest.raises(IllegalTransition, match=why):
            slots.evolve(slot, self.events[-1])


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer of ``next_step``."""

    step: Step

    def then_step(self, step: Step) -> None:
        """Exactly this step comes next."""
        assert self.step == step

    def then_refused(self, code: ErrorCode, *naming: str) -> None:
        """Nothing may be done; the words shown to the person name these things."""
        assert isinstance(self.step, Refuse), self.step
        error = self.step.error
        assert error.code is code
        shown = " ".join((error.what, error.safe, error.next or ""))
        for name in naming:
            assert name in shown


def given(*events: Event, slot: tuple[Event, ...] = (), holder: tuple[Event, ...] | None = None) -> Specification:
    """What happened so far."""
    return Specification(events, slot, holder)
