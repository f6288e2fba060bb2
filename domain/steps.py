"""The specification: what happens next, decided from state alone.

A run, a retry and a recovery are the same loop: rebuild the operation and its target's slot from events, ask
:func:`next_step`, perform the answer, append what was observed, ask again. ``dpone ops explain`` prints this function
for a person and the documentation's diagram is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .configuration import differences
from .errors import DponeError, ErrorCode
from .events import Review
from .identity import OperationKey, operation_id
from .operation import BEFORE_DISPATCH, Operation, State
from .slot import Holder, TargetSlot, displaceable


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: whose operation, and with which semantic configuration."""

    key: OperationKey
    configuration: Mapping[str, Any]
    configuration_digest: str

    @property
    def operation(self) -> str:
        return str(operation_id(self.key))


@dataclass(frozen=True, slots=True)
class Attempt:
    """This process. ``fence`` is the number that it appended itself; None until then. ``deferred`` are the drops that
    it tried and may not try again."""

    fence: int | None = None
    deferred: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """Admit the operation, or reopen it, and take the slot in one append."""

    reopen: bool = False
    displaces: str | None = None
    changed: tuple[str, ...] = ()
    sentence = "claim the target and read the source"


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Take the operation on where it stands, with the next fence."""

    sentence = "take the operation on where it stands"


@dataclass(frozen=True, slots=True)
class WorkOff:
    """Drop one table whose retirement is open."""

    name: str
    sentence = "drop a table that is no longer needed"


@dataclass(frozen=True, slots=True)
class AbandonStaging:
    """The open generation was never filled: void it and list what it left for dropping."""

    generation: str
    sentence = "abandon the unfinished candidate and read the source into a new one"


@dataclass(frozen=True, slots=True)
class Stage:
    """Read the source once into a new candidate table."""

    sentence = "read the source into a new candidate table"


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Observe the candidate; by the reader process when a target observation is owed."""

    by_reader: bool
    sentence = "observe the candidate table: the source is not read again"


@dataclass(frozen=True, slots=True)
class EvaluateGates:
    """Hold the observations against the gates."""

    sentence = "evaluate the gates: the source is not read again"


@dataclass(frozen=True, slots=True)
class WriteCapsule:
    """Seal the evidence."""

    sentence = "seal the evidence and publish: the source is not read again"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Look at every replica, record the intent, send the swap once."""

    sentence = "look at every replica and publish: the source is not read again"


@dataclass(frozen=True, slots=True)
class Settle:
    """Establish what became of the swap and bring it to its proof."""

    sentence = "establish whether the swap happened and bring it to its proof: no read, no insert"


@dataclass(frozen=True, slots=True)
class Observe:
    """Observe the target under a guard, acquired or taken over from an earlier attempt."""

    take_over: bool
    sentence = "observe the target: no read of the source, no insert, no publication"


@dataclass(frozen=True, slots=True)
class AcceptReceipt:
    """Validate the live generation in this attempt."""

    sentence = "check the live generation and issue a receipt: no read, no insert, no publication"


@dataclass(frozen=True, slots=True)
class ReleaseGuard:
    """No reader is left: say so in both streams."""

    sentence = "release the reader guard and complete: no read, no insert, no publication"


@dataclass(frozen=True, slots=True)
class Complete:
    """Everything is in the ledger: complete and vacate the slot."""

    sentence = "complete: no read, no insert, no publication"


@dataclass(frozen=True, slots=True)
class ValidateReplay:
    """Done before: check that the generation is still live, and record that it was checked."""

    sentence = "check the live generation and issue a receipt: no read, no insert, no publication"


@dataclass(frozen=True, slots=True)
class Refuse:
    """Nothing may be done; the error says why."""

    error: DponeError

    @property
    def sentence(self) -> str:
        return f"stop: {self.error.what}"


@dataclass(frozen=True, slots=True)
class Finished:
    """This attempt has nothing left to do."""

    sentence = "do nothing: it is finished"


Step = (
    Claim
    | StartAttempt
    | WorkOff
    | AbandonStaging
    | Stage
    | Rehearse
    | EvaluateGates
    | WriteCapsule
    | Dispatch
    | Settle
    | Observe
    | AcceptReceipt
    | ReleaseGuard
    | Complete
    | ValidateReplay
    | Refuse
    | Finished
)


def next_step(
    operation: Operation, slot: TargetSlot, holder: Operation | None, request: Request, attempt: Attempt
) -> Step:
    """The only place where order is decided.

    ``holder`` is the operation that holds the slot when that is not this one. The result depends on nothing else.
    """
    if attempt.fence is None:
        return _first_step(operation, slot, holder, request)
    if operation.attempt != attempt.fence:
        return Refuse(superseded(operation))
    match operation.state:
        case State.ADMITTED:
            return _admitted(operation, slot, attempt)
        case State.STAGED:
            return WriteCapsule() if operation.process.sink.durable else Dispatch()
        case State.PREPARED:
            return Dispatch()
        case State.DISPATCHED:
            return Settle()
        case State.COMMITTED:
            return Observe(take_over=False) if operation.owes_target else _receipt_then(operation, attempt, Complete())
        case State.TARGET_PENDING:
            return Observe(take_over=slot.guard is not None)
        case State.OBSERVED:
            return _receipt_then(operation, attempt, ReleaseGuard())
        case State.GUARD_RELEASED:
            return _receipt_then(operation, attempt, Complete())
        case State.COMPLETE:
            return _after_completion(operation, slot, attempt)
        case State.RETIRED:
            return Refuse(_retired(operation))
        case State.FAILED:
            return Finished()
        case State.NEW:
            return Refuse(superseded(operation))


def _first_step(operation: Operation, slot: TargetSlot, holder: Operation | None, request: Request) -> Step:
    """The guard ladder that precedes an attempt: each rung refuses, nothing of it is recorded."""
    if operation.state is State.NEW:
        return _claim(slot, holder, request, reopen=False, changed=())
    if operation.state is State.RETIRED:
        return Refuse(_retired(operation))
    changed = _changed(operation, request)
    if operation.state is State.FAILED and operation.failure is not None and not operation.failure.final:
        return _claim(slot, holder, request, reopen=True, changed=changed)
    if changed:
        return Refuse(_conflict(changed))
    if operation.state is State.FAILED:
        return Refuse(_failed_for_good(operation))
    if operation.state is not State.COMPLETE:
        return StartAttempt()
    if not operation.process.sink.durable:
        return _claim(slot, holder, request, reopen=True, changed=())
    if slot.holder is not None:
        return Refuse(blocked(slot, holder))
    if slot.live is None or operation.generation is None or slot.live.generation != operation.generation.id:
        return Refuse(_succeeded(slot))
    return ValidateReplay()


def _changed(operation: Operation, request: Request) -> tuple[str, ...]:
    if operation.configuration_digest == request.configuration_digest or operation.configuration is None:
        return ()
    return differences(operation.configuration, request.configuration)


def _claim(
    slot: TargetSlot, holder: Operation | None, request: Request, *, reopen: bool, changed: tuple[str, ...]
) -> Step:
    if slot.held is not None:
        return Refuse(held(slot, slot.held))
    if slot.holder is None:
        return Claim(reopen, None, changed)
    may = displaceable(slot.holder, request.key.dag_id, request.key.process, request.key.run_id)
    if may and holder is not None and holder.state in BEFORE_DISPATCH:
        return Claim(reopen, slot.holder.operation, changed)
    return Refuse(blocked(slot, holder))


def _admitted(operation: Operation, slot: TargetSlot, attempt: Attempt) -> Step:
    generation = operation.generation
    if generation is None:
        due = _due(slot, attempt)
        return Stage() if due is None else WorkOff(due)
    if not generation.is_staged:
        return AbandonStaging(generation.id)
    if generation.staged is None:
        return Rehearse(by_reader=operation.process.owes_target)
    return EvaluateGates()


def _receipt_then(operation: Operation, attempt: Attempt, step: Step) -> Step:
    if not operation.process.sink.durable:
        return step
    if operation.receipt is None or operation.receipt.attempt != attempt.fence:
        return AcceptReceipt()
    return step


def _after_completion(operation: Operation, slot: TargetSlot, attempt: Attempt) -> Step:
    replayed = operation.completed_attempt != attempt.fence
    due = None if replayed or slot.holder is not None else _due(slot, attempt)
    return Finished() if due is None else WorkOff(due)


def _due(slot: TargetSlot, attempt: Attempt) -> str | None:
    return next((name for name in slot.retirements if name not in attempt.deferred), None)


# ------------------------------------------------------------------------------------------------------ refusals


def superseded(operation: Operation) -> DponeError:
    """A newer attempt of the same operation took over."""
    return DponeError(
        ErrorCode.SUPERSEDED,
        f"Attempt {operation.attempt} of the same operation took over; this process stopped.",
        safe="The newer attempt goes on from the recorded events; nothing is done twice.",
        next=_explain(operation),
    )


def blocked(slot: TargetSlot, holder: Operation | None) -> DponeError:
    """Another operation holds the target."""
    held = slot.holder or Holder("unknown", "unknown", "unknown", "unknown")
    state = holder.state if holder is not None else "unknown"
    return DponeError(
        ErrorCode.TARGET_BLOCKED,
        f"The target {slot.target} is held by operation {held.operation[:8]} (dag {held.dag_id}, run {held.run_id}, "
        f"process {held.process}), which is {state}.",
        safe="Nothing was read or changed; the holder keeps the target until it completes.",
        next=f"dpone ops explain {held.operation}",
        known={"holder": {"operation_id": held.operation, "run_id": held.run_id, "state": str(state)}},
    )


def held(slot: TargetSlot, review: Review) -> DponeError:
    """A person stopped new claims of the target."""
    return DponeError(
        ErrorCode.TARGET_BLOCKED,
        f"New loads of {slot.target} were stopped by {review.name}: {review.reason}",
        safe="Nothing was read or changed; the live table is as it was.",
        next=f"dpone ops unhold {slot.target} --reviewed-by NAME --reason TEXT",
        known={"held_by": review.name},
    )


def _retired(operation: Operation) -> DponeError:
    event = operation.retired
    by = f" by operation {event.displaced_by[:8]}" if event is not None and event.displaced_by else ""
    why = event.reason if event is not None else "It was retired"
    return DponeError(
        ErrorCode.RETIRED,
        f"This operation was ended{by}: {why}.",
        safe="Its history is kept and it changes nothing any more.",
        next=_explain(operation),
    )


def _conflict(changed: tuple[str, ...]) -> DponeError:
    named = ", ".join(changed[:20]) + (" and more" if len(changed) > 20 else "")
    return DponeError(
        ErrorCode.IDENTITY_CONFLICT,
        f"This dag and run already stand for another configuration; what differs: {named}.",
        safe="Nothing was read or changed; the earlier operation is as it was.",
        next="Restore the manifest, or use another --run-id for the new configuration.",
    )


def _failed_for_good(operation: Operation) -> DponeError:
    errors = operation.failure.errors if operation.failure is not None else ()
    return DponeError(
        ErrorCode.EVIDENCE_INVALID,
        "This operation failed after its publication was proven and cannot be taken up again.",
        safe="The live table is the one that was published; the target stays held.",
        next=_explain(operation),
        errors=errors,
    )


def _succeeded(slot: TargetSlot) -> DponeError:
    live = slot.live
    if live is None:
        named = "nothing"
    elif live.adopted:
        named = "a table that was adopted"
    else:
        named = f"generation {live.generation[:8]} of run {live.run_id}"
    successor = live if live is not None and not live.adopted else None
    return DponeError(
        ErrorCode.EVIDENCE_MISMATCH,
        f"The run completed, but its generation is no longer live: the target {slot.target} now holds {named}.",
        safe="Nothing was read or changed; the later generation is untouched.",
        next=f"dpone ops explain {successor.operation}" if successor is not None else None,
        known={"successor": {"operation_id": successor.operation, "run_id": successor.run_id}} if successor else {},
    )


def _explain(operation: Operation) -> str | None:
    return f"dpone ops explain {operation_id(operation.key)}" if operation.key is not None else None
