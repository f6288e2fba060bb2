"""Why each event of an operation followed from those before it, told by the function that decided it.

An append is one decision. At the state that it found, :func:`~dpone.domain.steps.next_step` is asked again, as the
process that appended asked it, and its answer is held against what was appended. A step may append several times: what
follows within one attempt continues the step that began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from uuid import UUID

from . import events as e
from . import steps as s
from .explain import next_for, same_request
from .operation import Operation, State, evolve
from .ports import Recorded
from .slot import TargetSlot
from .slot import evolve as evolve_slot


@dataclass(frozen=True, slots=True)
class Moment:
    """An event at its place in the ledger. ``append`` is the id of the append that stored it."""

    position: int
    append: str
    recorded: Recorded


@dataclass(frozen=True, slots=True)
class Followed:
    """One append that the operation's history shows, and why it followed.

    ``step`` is None where a person or another operation decided, and where nothing recorded asks for it: ``because``
    tells which. ``state`` and ``then`` (what the same command would have done next) are those after the append.
    """

    moments: tuple[Moment, ...]
    attempt: int
    state: State
    step: str | None
    because: str
    follows: bool
    then: s.Step


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that a decision about one operation looks at, at one moment."""

    operation: Operation = field(default_factory=Operation)
    slot: TargetSlot = field(default_factory=TargetSlot)
    others: Mapping[UUID, Operation] = field(default_factory=dict)
    deferred: frozenset[str] = frozenset()

    def after(self, moment: Moment, stream: UUID, slot: UUID) -> Standing:
        """The same one event later. Raises IllegalTransition."""
        recorded = moment.recorded
        event = recorded.event
        if recorded.stream == stream:
            deferred = frozenset[str]() if isinstance(event, e.AttemptStarted) else self.deferred
            return replace(self, operation=evolve(self.operation, event), deferred=deferred)
        if recorded.stream == slot:
            refused = {event.name} if isinstance(event, e.RetirementDeferred) else set()
            return replace(self, slot=evolve_slot(self.slot, event), deferred=self.deferred | refused)
        known = self.others.get(recorded.stream, Operation())
        return replace(self, others={**self.others, recorded.stream: evolve(known, event)})

    @property
    def holder(self) -> Operation | None:
        """The operation that holds the slot, when that is another one."""
        return None if self.slot.holder is None else self.others.get(UUID(self.slot.holder.operation))


def retrace(moments: Sequence[Moment], stream: UUID, slot: UUID) -> tuple[tuple[Followed, ...], Standing]:
    """The history of ``stream``, an operation whose target's slot is ``slot``, and where it leads.

    ``moments`` are the events of both, and of the operations that held the slot, in ledger order; the last append may
    be cut. Raises IllegalTransition.
    """
    standing, told = Standing(), list[Followed]()
    begun: s.Step | None = None
    for _, grouped in groupby(moments, key=lambda moment: moment.append):
        group = tuple(grouped)
        before = standing
        for moment in group:
            standing = standing.after(moment, stream, slot)
        shown = tuple(moment for moment in group if moment.recorded.stream in (stream, slot))
        if not _is_told(shown, before, standing, stream):
            continue
        begun, because, follows = _decided(shown, before, begun, stream)
        name = type(begun).__name__ if begun is not None else None
        then = next_for(standing.operation, standing.slot, standing.holder, same_request(standing.operation))
        state = standing.operation.state
        told.append(Followed(shown, standing.operation.attempt, state, name, because, follows, then))
    return tuple(told), standing


def _is_told(shown: Sequence[Moment], before: Standing, after: Standing, stream: UUID) -> bool:
    """The operation's own events, and what happens to its target while it holds that or cleans up after itself."""
    if any(moment.recorded.stream == stream for moment in shown):
        return True
    if not shown or after.operation.state is State.NEW:
        return False
    holder, live = before.slot.holder, before.slot.live
    if holder is not None:
        return holder.operation == str(stream)
    events = [moment.recorded.event for moment in shown]
    own = live is not None and live.operation == str(stream)
    return own and all(isinstance(event, e.TableRetired | e.RetirementDeferred) for event in events)


def _decided(
    shown: Sequence[Moment], before: Standing, begun: s.Step | None, stream: UUID
) -> tuple[s.Step | None, str, bool]:
    """The step, why it followed, and whether it did."""
    events = [moment.recorded.event for moment in shown]
    own = [moment.recorded.event for moment in shown if moment.recorded.stream == stream]
    by_others = _by_others(events)
    if by_others is not None:
        return None, by_others, True
    asked = _asked(own, before)
    if any(isinstance(event, e.OperationFailed) for event in own):
        return _failed(begun, asked, before)
    if isinstance(begun, _IN_PARTS) and _appends(begun, events):
        return begun, "it went on", True
    if _appends(asked, events):
        return asked, _reason(asked, before), True
    return None, f"nothing that is recorded asks for it: {type(asked).__name__} was due", False


def _appends(step: s.Step, events: Iterable[e.Event]) -> bool:
    return any(isinstance(step, _APPENDED_BY.get(type(event), ())) for event in events)


def _failed(begun: s.Step | None, asked: s.Step, before: Standing) -> tuple[s.Step, str, bool]:
    """Whatever was under way when it truly failed."""
    if isinstance(begun, s.Stage) and isinstance(asked, s.AbandonStaging):
        return begun, "it went on, and truly failed", True
    return asked, f"{_reason(asked, before)}; it truly failed", True


def _asked(own: Sequence[e.Event], before: Standing) -> s.Step:
    """What the process that appended these had asked, and was told."""
    operation = before.operation
    first = own[0] if own else None
    opening = isinstance(first, e.OperationAdmitted | e.OperationReopened | e.AttemptStarted)
    attempt = s.Attempt() if opening else s.Attempt(operation.attempt, before.deferred)
    return s.next_step(operation, before.slot, before.holder, _request(first, operation), attempt)


def _request(first: e.Event | None, operation: Operation) -> s.Request:
    if isinstance(first, e.OperationAdmitted):
        return s.Request(first.key, first.configuration, first.configuration_digest)
    if isinstance(first, e.OperationReopened) and operation.key is not None:
        return s.Request(operation.key, first.configuration, first.configuration_digest)
    return same_request(operation)


def _by_others(events: Iterable[e.Event]) -> str | None:
    """Who decided, where it was not this operation's own loop."""
    for event in events:
        review = getattr(event, "review", None)
        if isinstance(review, e.Review):
            return f"{review.name} decided: {review.reason}"
        if isinstance(event, e.OperationRetired) and event.displaced_by is not None:
            return f"operation {event.displaced_by[:8]}, a later run, took the target before this one had dispatched"
        if type(event).__name__ in ("InventoryChanged", "TableAdopted"):
            return "the platform's owner changed what the platform is"
    return None


_IN_PARTS = (s.Stage, s.Settle, s.Observe)
"""Steps that append more than once: asked in between, the function would tell what a later attempt had to do."""

_APPENDED_BY: Mapping[type[e.Event], tuple[type[s.Step], ...]] = {
    e.OperationAdmitted: (s.Claim,),
    e.OperationReopened: (s.Claim,),
    e.AttemptStarted: (s.StartAttempt,),
    e.StagingOpened: (s.Stage,),
    e.SourceObserved: (s.Stage,),
    e.CandidateStaged: (s.Stage,),
    e.StagingAbandoned: (s.AbandonStaging, s.Rehearse, s.EvaluateGates, s.Dispatch),
    e.StagedObserved: (s.Rehearse,),
    e.GatesEvaluated: (s.EvaluateGates,),
    e.CapsuleWritten: (s.WriteCapsule,),
    e.PublicationDispatched: (s.Dispatch, s.Settle),
    e.PublicationFenced: (s.Settle,),
    e.InventoryReduced: (s.Dispatch, s.Settle),
    e.CommitProven: (s.Settle,),
    e.TargetPending: (s.Observe,),
    e.TargetObserved: (s.Observe,),
    e.TargetObservationWaived: (s.Observe,),
    e.ObservationAbandoned: (s.Observe,),
    e.ReceiptAccepted: (s.AcceptReceipt,),
    e.ReaderGuardReleased: (s.ReleaseGuard,),
    e.OperationCompleted: (s.Complete,),
    e.ReplayValidated: (s.ValidateReplay,),
    e.TableRetired: (s.WorkOff,),
    e.RetirementDeferred: (s.WorkOff,),
}
"""Which steps append an event. A failure may end every step; what persons decide is no step."""


def _reason(step: s.Step, before: Standing) -> str:
    """What it was in the state that asked for this step."""
    operation = before.operation
    match step:
        case s.Claim():
            return _claimed(step, operation)
        case s.StartAttempt():
            return f"it stood at {operation.state} and its process was gone or gave way"
        case s.WorkOff():
            return "a table of an earlier load waits to be dropped"
        case s.AbandonStaging():
            return "an earlier attempt opened a candidate and did not fill it"
        case s.Stage():
            return "it owns the target and nothing is staged"
        case s.Rehearse():
            return "the candidate is filled and was not counted yet"
        case s.EvaluateGates():
            return "source and candidate are counted"
        case s.WriteCapsule():
            return "the gates passed and the evidence is not sealed"
        case s.Dispatch():
            return "the gates passed" if operation.state is State.STAGED else "the evidence is sealed"
        case s.Settle():
            return "a swap was dispatched and its outcome is not recorded"
        case s.Observe():
            kept = "; the guard of an earlier reader is held" if step.take_over else ""
            return f"the swap is proven and the target's observation is owed{kept}"
        case s.AcceptReceipt():
            return "what was owed is observed and this attempt has no receipt"
        case s.ReleaseGuard():
            return "this attempt has its receipt and the guard is held"
        case s.Complete():
            return "every evidence is recorded and no guard is held"
        case s.ValidateReplay():
            return "it was complete and its generation still live"
        case s.Refuse():
            return f"it was to be refused: {step.error.what}"
        case s.Finished():
            return "nothing was left to do"


def _claimed(step: s.Claim, operation: Operation) -> str:
    if step.displaces is not None:
        return f"the target's holder, operation {step.displaces[:8]}, was an earlier run that had not dispatched"
    if not step.reopen:
        return "the target was free"
    changed = f", with changes in {', '.join(step.changed)}" if step.changed else ""
    return f"it was {operation.state} and the target was free{changed}"
