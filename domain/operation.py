"""The operation: one bounded full refresh, folded from its events.

The states and what leads from one to the next are the table in ``docs/explanation/protocol.md``; ``evolve`` is that
table. An event that the state does not allow raises IllegalTransition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from . import events as e
from .configuration import from_semantic
from .errors import IllegalTransition
from .generation import Failure, Generation, Publication
from .identity import OperationKey
from .process import Process
from .tables import Observation


class State(StrEnum):
    """Where an operation stands."""

    NEW = "NEW"
    ADMITTED = "ADMITTED"
    STAGED = "STAGED"
    PREPARED = "PREPARED"
    DISPATCHED = "DISPATCHED"
    COMMITTED = "COMMITTED"
    TARGET_PENDING = "TARGET_PENDING"
    OBSERVED = "OBSERVED"
    GUARD_RELEASED = "GUARD_RELEASED"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    RETIRED = "RETIRED"


BEFORE_DISPATCH = frozenset({State.ADMITTED, State.STAGED, State.PREPARED})
AFTER_COMMIT = frozenset({State.COMMITTED, State.TARGET_PENDING, State.OBSERVED, State.GUARD_RELEASED})


@dataclass(frozen=True, slots=True)
class Operation:
    """State of one operation's stream at ``version`` (0: it does not exist yet)."""

    version: int = 0
    state: State = State.NEW
    key: OperationKey | None = None
    configuration: Mapping[str, Any] | None = None
    settings: Process | None = None
    configuration_digest: str = ""
    inventory: tuple[str, ...] = ()
    attempt: int = 0
    incarnation: int = 1
    generation: Generation | None = None
    publication: Publication | None = None
    guard: str | None = None
    target: Observation | None = None
    differences: tuple[str, ...] = ()
    waived: str | None = None
    receipt: e.ReceiptAccepted | e.ReplayValidated | None = None
    completed_attempt: int = 0
    validated_attempt: int = 0
    failure: Failure | None = None
    retired: e.OperationRetired | None = None

    @property
    def process(self) -> Process:
        """The configuration as the classes that mean it."""
        if self.settings is None:
            raise IllegalTransition("The operation was never admitted.")
        return self.settings

    @property
    def owes_target(self) -> bool:
        """Whether a target observation is owed (capsule version 2)."""
        return (
            self.generation is not None
            and self.generation.core is not None
            and self.generation.core.target_plan is not None
        )

    @property
    def target_commit(self) -> str:
        """``not_started``, ``unknown`` or ``proven``."""
        if self.publication is None:
            return "not_started"
        return "unknown" if self.publication.proven is None else "proven"

    @property
    def governance(self) -> str:
        """``complete`` once all evidence is in the ledger, else ``blocked``."""
        return "complete" if self.state is State.COMPLETE else "blocked"

    @property
    def capsule_state(self) -> str | None:
        """PREPARED, TARGET_PENDING, COMPLETE or FAILED; None while there is no capsule."""
        if self.generation is None or self.generation.core is None:
            return None
        if self.state in (State.COMPLETE, State.FAILED):
            return self.state.value
        pending = self.state in (State.TARGET_PENDING, State.OBSERVED, State.GUARD_RELEASED)
        return "TARGET_PENDING" if pending else "PREPARED"


def fold(events: Iterable[e.Event]) -> Operation:
    """The operation that these events say. Raises IllegalTransition."""
    operation = Operation()
    for event in events:
        operation = evolve(operation, event)
    return operation


def evolve(operation: Operation, event: e.Event) -> Operation:
    """The operation after ``event``. Raises IllegalTransition."""
    return replace(_evolve(operation, event), version=operation.version + 1)


def _evolve(op: Operation, event: e.Event) -> Operation:
    match event:
        case e.OperationAdmitted():
            return _admit(op, event)
        case e.AttemptStarted():
            _demand(
                op, event, op.state is not State.NEW and op.state is not State.RETIRED and op.state is not State.FAILED
            )
            _check(event.attempt == op.attempt + 1, event, "its fence is not the next one")
            return replace(op, attempt=event.attempt)
        case e.StagingOpened():
            _demand(op, event, op.state is State.ADMITTED and op.generation is None)
            _check_attempt(op, event, event.attempt)
            return replace(op, generation=_opened(event))
        case e.SourceObserved():
            generation = _open_generation(op, event, event.generation)
            return replace(op, generation=replace(generation, source=event.observation, fingerprint=event.fingerprint))
        case e.CandidateStaged():
            generation = _open_generation(op, event, event.generation)
            _check(generation.source is not None, event, "the source was not observed")
            return replace(op, generation=replace(generation, rows=event.rows, identities=event.identities))
        case e.StagingAbandoned():
            _demand(op, event, op.state in BEFORE_DISPATCH)
            _current_generation(op, event, event.generation)
            return replace(op, state=State.ADMITTED, generation=None)
        case e.StagedObserved():
            generation = _staged_generation(op, event, event.generation)
            return replace(op, generation=replace(generation, staged=event.observation))
        case e.GatesEvaluated():
            generation = _staged_generation(op, event, event.generation)
            _check(generation.staged is not None, event, "the candidate was not observed")
            state = State.STAGED if event.passed else op.state
            return replace(op, state=state, generation=replace(generation, gates=event.gates))
        case e.CapsuleWritten():
            return _write_capsule(op, event)
        case e.PublicationDispatched():
            return _dispatch(op, event)
        case e.PublicationFenced():
            return _fence(op, event)
        case e.InventoryReduced():
            return _reduce(op, event)
        case e.CommitProven():
            return _prove(op, event)
        case e.TargetPending():
            _demand(op, event, op.state in (State.COMMITTED, State.TARGET_PENDING) and op.owes_target)
            _check_attempt(op, event, event.attempt)
            return replace(op, state=State.TARGET_PENDING, guard=event.guard)
        case e.TargetObserved():
            _demand(op, event, op.state is State.TARGET_PENDING and op.guard is not None)
            return replace(op, state=State.OBSERVED, target=event.observation, differences=event.differences)
        case e.TargetObservationWaived():
            _demand(op, event, op.state is State.TARGET_PENDING and op.guard is not None)
            return replace(op, state=State.OBSERVED, waived=event.reason)
        case e.ObservationAbandoned():
            _demand(op, event, op.state is State.TARGET_PENDING and op.guard == event.guard)
            return replace(op, guard=None)
        case e.ReceiptAccepted():
            return _accept_receipt(op, event)
        case e.ReaderGuardReleased():
            _demand(op, event, op.state is State.OBSERVED and op.guard == event.guard)
            _check(op.receipt is not None and op.receipt.attempt == op.attempt, event, "this attempt has no receipt")
            return replace(op, state=State.GUARD_RELEASED, guard=None)
        case e.OperationCompleted():
            return _complete(op, event)
        case e.ReplayValidated():
            _demand(op, event, op.state is State.COMPLETE)
            _check_attempt(op, event, event.attempt)
            return replace(op, validated_attempt=event.attempt, receipt=event)
        case e.OperationFailed():
            _demand(op, event, op.state in BEFORE_DISPATCH | AFTER_COMMIT)
            failure = Failure(event.code, event.errors, event.candidate, final=op.state in AFTER_COMMIT)
            return replace(op, state=State.FAILED, failure=failure)
        case e.OperationRetired():
            return _retire(op, event)
        case e.OperationReopened():
            return _reopen(op, event)
        case _:
            raise IllegalTransition(f"{type(event).__name__} does not belong to an operation.")


def _admit(op: Operation, event: e.OperationAdmitted) -> Operation:
    _demand(op, event, op.state is State.NEW)
    return replace(
        op,
        state=State.ADMITTED,
        key=event.key,
        configuration=event.configuration,
        settings=_settings(event, event.configuration),
        configuration_digest=event.configuration_digest,
        inventory=event.inventory,
    )


def _opened(event: e.StagingOpened) -> Generation:
    return Generation(event.generation, event.candidate, event.definition, event.source_schema)


def _settings(event: e.Event, configuration: Mapping[str, Any]) -> Process:
    try:
        return from_semantic(configuration)
    except (KeyError, TypeError, ValueError) as error:
        raise IllegalTransition(f"{type(event).__name__} holds a configuration that cannot be understood.") from error


def _write_capsule(op: Operation, event: e.CapsuleWritten) -> Operation:
    _demand(op, event, op.state is State.STAGED and op.process.sink.durable)
    generation = _current_generation(op, event, event.generation)
    _check(event.core.generation == generation.id and event.core.gates_passed, event, "its core is another's")
    sealed = replace(generation, core=event.core, core_digest=event.core_digest)
    return replace(op, state=State.PREPARED, generation=sealed)


def _dispatch(op: Operation, event: e.PublicationDispatched) -> Operation:
    first = State.PREPARED if op.process.sink.durable else State.STAGED
    _demand(op, event, op.state in (first, State.DISPATCHED))
    _check_attempt(op, event, event.attempt)
    _current_generation(op, event, event.generation)
    earlier = op.publication
    _check(event.epoch == (earlier.epoch + 1 if earlier else 1), event, "its epoch is not the next one")
    _check(earlier is None or earlier.fenced == event.candidate, event, "its candidate was not fenced off first")
    publication = Publication(
        epoch=event.epoch,
        candidate=event.candidate,
        exchange=event.exchange,
        predecessor=event.predecessor if earlier is None else earlier.predecessor,
        dispatches=1 if earlier is None else earlier.dispatches + 1,
    )
    return replace(op, state=State.DISPATCHED, publication=publication)


def _fence(op: Operation, event: e.PublicationFenced) -> Operation:
    _demand(op, event, op.state is State.DISPATCHED)
    _check_attempt(op, event, event.attempt)
    if op.publication is None:
        raise _illegal(op, event, "nothing was dispatched")
    _current_generation(op, event, event.generation)
    _check(event.epoch == op.publication.epoch + 1, event, "its epoch is not the next one")
    return replace(op, publication=replace(op.publication, fenced=event.candidate))


def _reduce(op: Operation, event: e.InventoryReduced) -> Operation:
    _demand(op, event, op.state is State.DISPATCHED)
    _check_attempt(op, event, event.attempt)
    excluded = set(event.excluded)
    _check(bool(excluded) and excluded < set(op.inventory), event, "it does not leave some of the replicas")
    return replace(op, inventory=tuple(replica for replica in op.inventory if replica not in excluded))


def _prove(op: Operation, event: e.CommitProven) -> Operation:
    _demand(op, event, op.state is State.DISPATCHED)
    _check_attempt(op, event, event.attempt)
    if op.publication is None:
        raise _illegal(op, event, "nothing was dispatched")
    _current_generation(op, event, event.generation)
    _check(set(event.identities) == set(op.inventory), event, "it does not speak of every replica")
    return replace(op, state=State.COMMITTED, publication=replace(op.publication, proven=event.identities))


def _accept_receipt(op: Operation, event: e.ReceiptAccepted) -> Operation:
    states = (State.OBSERVED, State.GUARD_RELEASED) if op.owes_target else (State.COMMITTED,)
    _demand(op, event, op.state in states)
    _check_attempt(op, event, event.attempt)
    generation = _current_generation(op, event, event.generation)
    _check(event.core_digest == generation.core_digest, event, "its core is another's")
    return replace(op, receipt=event)


def _complete(op: Operation, event: e.OperationCompleted) -> Operation:
    _demand(op, event, op.state is (State.GUARD_RELEASED if op.owes_target else State.COMMITTED))
    _check_attempt(op, event, event.attempt)
    if op.process.sink.durable:
        fresh = op.receipt is not None and op.receipt.attempt == event.attempt and op.receipt.receipt == event.receipt
        _check(fresh, event, "this attempt has no receipt")
    return replace(op, state=State.COMPLETE, completed_attempt=event.attempt)


def _retire(op: Operation, event: e.OperationRetired) -> Operation:
    """By a later run only before dispatch; by a person as long as it is neither complete nor ended."""
    unfinished = op.state in BEFORE_DISPATCH | AFTER_COMMIT | {State.DISPATCHED}
    stuck = op.state is State.FAILED and op.failure is not None and op.failure.final
    _demand(op, event, op.state in BEFORE_DISPATCH if event.review is None else unfinished or stuck)
    return replace(op, state=State.RETIRED, guard=None, retired=event)


def _reopen(op: Operation, event: e.OperationReopened) -> Operation:
    retryable = op.state is State.FAILED and op.failure is not None and not op.failure.final
    repeated = op.state is State.COMPLETE and not op.process.sink.durable
    reviewed = event.review is not None and op.state in (State.COMPLETE, State.RETIRED)
    _demand(op, event, retryable or repeated or reviewed)
    return Operation(
        state=State.ADMITTED,
        key=op.key,
        version=op.version,
        configuration=event.configuration,
        settings=_settings(event, event.configuration),
        configuration_digest=event.configuration_digest,
        inventory=event.inventory,
        attempt=op.attempt,
        incarnation=op.incarnation + 1,
    )


def _current_generation(op: Operation, event: e.Event, generation: str) -> Generation:
    if op.generation is None or op.generation.id != generation:
        raise _illegal(op, event, "it speaks of another generation")
    return op.generation


def _open_generation(op: Operation, event: e.Event, generation: str) -> Generation:
    _demand(op, event, op.state is State.ADMITTED)
    current = _current_generation(op, event, generation)
    _check(not current.is_staged, event, "the candidate was filled already")
    return current


def _staged_generation(op: Operation, event: e.Event, generation: str) -> Generation:
    _demand(op, event, op.state is State.ADMITTED)
    current = _current_generation(op, event, generation)
    _check(current.is_staged, event, "the candidate is not filled")
    return current


def _check_attempt(op: Operation, event: e.Event, attempt: int) -> None:
    _check(attempt == op.attempt and attempt > 0, event, "another attempt is the current one")


def _demand(op: Operation, event: e.Event, condition: bool) -> None:
    if not condition:
        raise _illegal(op, event, f"the operation is {op.state}")


def _check(condition: bool, event: e.Event, why: str) -> None:
    if not condition:
        raise IllegalTransition(f"{type(event).__name__} is not allowed here: {why}.")


def _illegal(op: Operation, event: e.Event, why: str) -> IllegalTransition:
    return IllegalTransition(f"{type(event).__name__} is not allowed in {op.state}: {why}.")
