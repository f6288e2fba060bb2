"""An operation's history for a person: what happened, what holds now, what the same command would do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from . import events as e
from .operation import Operation, State, evolve
from .slot import TargetSlot
from .steps import Attempt, Refuse, Request, StartAttempt, Step, next_step


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the timeline. ``mark``: ``done``, ``broken`` or ``end``; ``seconds`` count from the first event."""

    mark: str
    title: str
    text: str
    at: str
    seconds: float
    attempt: int


def timeline(events: Sequence[e.Event]) -> tuple[Line, ...]:
    """The lines of an operation's events, oldest first."""
    lines: list[Line] = []
    operation = Operation()
    for index, event in enumerate(events):
        if isinstance(event, e.AttemptStarted) and _was_interrupted(operation, events[:index]):
            lines.append(_line("broken", "interrupted", _ended(operation), events, event, operation.attempt, at=""))
        operation = evolve(operation, event)
        told = shown(event, operation)
        if told is not None:
            mark, title, text = told
            lines.append(_line(mark, title, text, events, event, operation.attempt))
    return tuple(lines)


def next_for(operation: Operation, slot: TargetSlot, holder: Operation | None, request: Request) -> Step:
    """What the same command would do next, by the function that decides it, seen through the start of an attempt."""
    step = next_step(operation, slot, holder, request, Attempt())
    if not isinstance(step, StartAttempt):
        return step
    resumed = replace(operation, attempt=operation.attempt + 1)
    return next_step(resumed, slot, holder, request, Attempt(fence=resumed.attempt))


def same_request(operation: Operation) -> Request:
    """The request that the same command would make."""
    if operation.key is None or operation.configuration is None:
        raise ValueError("the operation was never admitted")
    return Request(operation.key, operation.configuration, operation.configuration_digest)


def holds_now(operation: Operation) -> str:
    """What holds now, in one sentence."""
    state = operation.state
    if state is State.COMPLETE:
        return "The generation was published, proven and observed as asked; the operation is complete."
    if state is State.FAILED:
        final = operation.failure is not None and operation.failure.final
        return (
            "It failed after the proof; the target stays held."
            if final
            else ("It failed before anything was published; the live table was not touched and the target is free.")
        )
    if state is State.RETIRED:
        return "It was ended; it changes nothing any more."
    match operation.target_commit:
        case "proven":
            return "The new table is live and proven; evidence is still owed."
        case "unknown":
            return "A swap was dispatched; whether it happened is not recorded yet."
        case _ if operation.incarnation > 1:
            return "Nothing was published since it was begun anew; the live table is untouched."
        case _:
            return "Nothing was published; the live table is untouched."


def sentence(step: Step) -> str:
    """The step for a person."""
    if isinstance(step, Refuse):
        return f"The same command would now stop: {step.error.what}"
    return f"The same command would now {step.sentence}."


def _was_interrupted(operation: Operation, before: Sequence[e.Event]) -> bool:
    if operation.attempt == 0 or operation.state is State.NEW:
        return False
    previous = before[-1]
    if isinstance(previous, e.AttemptStarted) and len(before) > 1 and isinstance(before[-2], e.OperationReopened):
        return before[-2].review is None  # a person reopened it and left the rest to the next command
    told = (e.ObservationAbandoned, e.OperationReopened, e.ReplayValidated, e.OperationCompleted)
    return not isinstance(previous, told)


def _ended(operation: Operation) -> str:
    return f"attempt {operation.attempt} ended here without a word"


def _line(
    mark: str, title: str, text: str, events: Sequence[e.Event], event: e.Event, attempt: int, at: str | None = None
) -> Line:
    seconds = (_moment(event.at) - _moment(events[0].at)).total_seconds()
    return Line(mark, title, text, event.at if at is None else at, seconds, attempt)


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at)


def shown(event: e.Event, operation: Operation) -> tuple[str, str, str] | None:
    """Mark, title and text of an event's line; None for one without a line. ``operation`` is as it is afterwards."""
    match event:
        case e.OperationAdmitted():
            return "done", "admitted", f"{len(event.inventory)} replica{_s(len(event.inventory))}"
        case e.AttemptStarted():
            which = f" (try {event.try_number} of its task)" if event.try_number is not None else ""
            return "done", "attempt", f"{event.attempt} by {event.by.os_user} on {event.by.host}{which}"
        case e.SourceObserved():
            name = event.fingerprint.get("name", "the source")
            return "done", "read", f"{event.observation.row_count:,} rows of {name}"
        case e.CandidateStaged():
            return "done", "staged", f"{max(event.rows.values(), default=0):,} rows in a candidate table"
        case e.StagingAbandoned():
            return "broken", "abandoned", event.reason
        case e.StagedObserved():
            how = f"by a reader in {event.milliseconds / 1000:.1f} s of 60 s" if event.rehearsed else "in process"
            return "done", "rehearsed" if event.rehearsed else "counted", f"{event.observation.row_count:,} rows {how}"
        case e.GatesEvaluated():
            return "done" if event.passed else "broken", "gates", _gates(event)
        case e.CapsuleWritten():
            return "done", "capsule written", f"core {event.core_digest[:15]}…"
        case e.PublicationDispatched():
            again = "" if event.epoch == 1 else f", epoch {event.epoch}"
            return "done", "dispatched", f"one swap to {len(event.replicas)} replica{_s(len(event.replicas))}{again}"
        case e.PublicationFenced():
            return "done", "fenced", f"earlier statements can no longer succeed on {', '.join(event.replicas)}"
        case e.InventoryReduced():
            return "done", "fewer replicas", f"excluded since: {', '.join(event.excluded)}"
        case e.CommitProven():
            total = len(operation.inventory)
            return "done", "committed", f"proven on {len(event.identities)} of {total} replica{_s(total)}"
        case e.TargetObserved():
            differs = f"; differs from staged: {', '.join(event.differences)}" if event.differences else ""
            spent = f"{event.milliseconds / 1000:.1f} s of 60 s"
            return "done", "target observed", f"{event.observation.row_count:,} rows in {spent}{differs}"
        case e.TargetObservationWaived():
            return "broken", "waived", event.reason
        case e.ObservationAbandoned():
            return "broken", "not observed", event.reason
        case e.ReceiptAccepted():
            return "done", "receipt", f"generation {event.generation[:8]} is live, attempt {event.attempt}"
        case e.ReaderGuardReleased():
            return "done", "guard released", ""
        case e.OperationCompleted():
            return "end", "complete", ""
        case e.ReplayValidated():
            return "done", "replay validated", f"attempt {event.attempt}: nothing was read or published"
        case e.OperationFailed():
            return "broken", "failed", "; ".join(event.errors[:3])
        case e.OperationRetired():
            return "end", "retired", event.reason
        case e.OperationReopened():
            changed = f"; changed: {', '.join(event.changed)}" if event.changed else ""
            return "done", "reopened", f"{event.reason}{changed}"
        case _:
            return None


def _gates(event: e.GatesEvaluated) -> str:
    return "; ".join(gate.sentence() for gate in event.gates) if event.gates else "none declared"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
