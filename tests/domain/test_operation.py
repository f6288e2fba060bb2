"""Which events the operation's own stream allows: every state against every class of event, and finer conditions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dpone.domain import events as e
from dpone.domain.operation import State

from . import examples as x
from .every_event import one_of_every_event
from .specification import given

V1 = x.process(observes=False)
PLAIN = x.process(durable=False, observes=False)
OPEN = (*x.UNTIL[State.ADMITTED], x.opened())
ALWAYS_BEFORE_DISPATCH = {e.AttemptStarted, e.OperationFailed, e.OperationRetired}

HISTORIES: Mapping[str, tuple[tuple[e.Event, ...], set[type[e.Event]]]] = {
    "new": ((), {e.OperationAdmitted}),
    "admitted": (x.UNTIL[State.ADMITTED], ALWAYS_BEFORE_DISPATCH | {e.StagingOpened}),
    "open generation": (OPEN, ALWAYS_BEFORE_DISPATCH | {e.SourceObserved, e.StagingAbandoned}),
    "source observed": (
        (*OPEN, x.source_observed()),
        ALWAYS_BEFORE_DISPATCH | {e.SourceObserved, e.CandidateStaged, e.StagingAbandoned},
    ),
    "candidate staged": (x.STAGED_CANDIDATE, ALWAYS_BEFORE_DISPATCH | {e.StagedObserved, e.StagingAbandoned}),
    "candidate observed": (
        (*x.STAGED_CANDIDATE, x.staged_observed()),
        ALWAYS_BEFORE_DISPATCH | {e.StagedObserved, e.GatesEvaluated, e.StagingAbandoned},
    ),
    "staged": (x.UNTIL[State.STAGED], ALWAYS_BEFORE_DISPATCH | {e.CapsuleWritten, e.StagingAbandoned}),
    "prepared": (x.UNTIL[State.PREPARED], ALWAYS_BEFORE_DISPATCH | {e.PublicationDispatched, e.StagingAbandoned}),
    "dispatched": (x.UNTIL[State.DISPATCHED], {e.AttemptStarted, e.PublicationFenced, e.CommitProven}),
    "committed": (x.UNTIL[State.COMMITTED], {e.AttemptStarted, e.TargetPending, e.OperationFailed}),
    "target pending": (
        x.UNTIL[State.TARGET_PENDING],
        {
            e.AttemptStarted,
            e.TargetPending,
            e.TargetObserved,
            e.TargetObservationWaived,
            e.ObservationAbandoned,
            e.OperationFailed,
        },
    ),
    "observed": (x.UNTIL[State.OBSERVED], {e.AttemptStarted, e.ReceiptAccepted, e.OperationFailed}),
    "receipt accepted": (
        (*x.UNTIL[State.OBSERVED], x.receipt()),
        {e.AttemptStarted, e.ReceiptAccepted, e.ReaderGuardReleased, e.OperationFailed},
    ),
    "guard released": (
        x.UNTIL[State.GUARD_RELEASED],
        {e.AttemptStarted, e.ReceiptAccepted, e.OperationCompleted, e.OperationFailed},
    ),
    "complete": (x.UNTIL[State.COMPLETE], {e.AttemptStarted, e.ReplayValidated}),
    "failed before dispatch": (x.UNTIL[State.FAILED], {e.OperationReopened}),
    "failed for good": (x.FAILED_FOR_GOOD, set()),
    "retired": (x.UNTIL[State.RETIRED], set()),
}

OWN = {type(event): event for event in one_of_every_event()}
OWN[e.AttemptStarted] = x.started(2)
OWN[e.ReplayValidated] = x.validated(1)
OWN[e.PublicationDispatched] = x.dispatched()
OWN[e.GatesEvaluated] = x.gates_evaluated()


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", OWN.values(), ids=lambda event: type(event).__name__)
def test_exactly_the_legal_events_are_allowed(history: str, kind: e.Event) -> None:
    events, legal = HISTORIES[history]
    if type(kind) in legal:
        given(*events).when(kind).then_legal()
    else:
        given(*events).when(kind).then_illegal()


class TestAttempts:
    def test_the_fence_is_the_next_number(self) -> None:
        given(*x.UNTIL[State.ADMITTED]).when(x.started(3)).then_illegal("fence")
        given(*x.UNTIL[State.ADMITTED]).when(x.started(1)).then_illegal("fence")

    @pytest.mark.parametrize(
        ("state", "event"),
        [
            (State.ADMITTED, x.opened()),
            (State.PREPARED, x.dispatched()),
            (State.DISPATCHED, x.fenced()),
            (State.DISPATCHED, x.proven()),
            (State.COMMITTED, x.pending()),
            (State.OBSERVED, x.receipt()),
            (State.GUARD_RELEASED, x.completed()),
            (State.COMPLETE, x.validated(1)),
        ],
    )
    def test_an_earlier_attempt_appends_nothing_of_consequence(self, state: State, event: e.Event) -> None:
        given(*x.UNTIL[state], x.started(2)).when(event).then_illegal()


class TestEvidenceNeverMixesTwoReads:
    @pytest.mark.parametrize("state", [State.STAGED, State.PREPARED])
    def test_an_abandoned_generation_takes_its_evidence_along(self, state: State) -> None:
        operation = given(*x.UNTIL[state]).when(x.staging_abandoned()).then(State.ADMITTED)
        assert operation.generation is None
        assert operation.capsule_state is None

    def test_evidence_of_another_generation_is_refused(self) -> None:
        given(*OPEN).when(x.source_observed(x.OTHER_GENERATION)).then_illegal("another generation")
        given(*x.STAGED_CANDIDATE).when(x.staged_observed(x.OTHER_GENERATION)).then_illegal("another generation")
        given(*x.UNTIL[State.STAGED]).when(x.capsule_written(generation=x.OTHER_GENERATION)).then_illegal("another")
        given(*x.UNTIL[State.DISPATCHED]).when(x.proven(generation=x.OTHER_GENERATION)).then_illegal("another")

    def test_a_capsule_is_sealed_over_its_own_generation_alone(self) -> None:
        other = e.CapsuleWritten(
            at=x.AT,
            generation=x.GENERATION,
            core=x.core(generation=x.OTHER_GENERATION),
            core_digest="sha256:00",
            envelope_bytes_max=1,
            reply_bytes_max=1,
        )
        given(*x.UNTIL[State.STAGED]).when(other).then_illegal("core is another's")

    def test_failed_gates_lead_nowhere_but_to_failure(self) -> None:
        no = (*x.STAGED_CANDIDATE, x.staged_observed(), x.gates_evaluated(passed=False))
        given(*no).when(x.capsule_written()).then_illegal()
        given(*no).when(x.failed()).then(State.FAILED)


class TestPublication:
    def test_the_first_epoch_is_one(self) -> None:
        given(*x.UNTIL[State.PREPARED]).when(x.dispatched(epoch=2)).then_illegal("epoch")

    def test_a_fence_and_the_next_dispatch_follow_each_other(self) -> None:
        again = given(*x.UNTIL[State.DISPATCHED], x.started(2))
        operation = again.when(x.fenced(2), x.dispatched(2, 2)).then(State.DISPATCHED)
        assert operation.publication is not None
        assert (operation.publication.epoch, operation.publication.dispatches) == (2, 2)

    def test_no_second_dispatch_without_a_fence(self) -> None:
        given(*x.UNTIL[State.DISPATCHED]).when(x.dispatched(1, 2)).then_illegal("fenced")

    def test_no_second_dispatch_under_another_name_than_the_fences(self) -> None:
        later = (*x.UNTIL[State.DISPATCHED], x.started(2), x.fenced(2), x.started(3))
        given(*later).when(x.dispatched(3, 2)).then_illegal("fenced")

    def test_the_predecessor_is_what_the_first_dispatch_saw(self) -> None:
        second = x.dispatched(1, 2, predecessor={})
        operation = given(*x.UNTIL[State.DISPATCHED]).when(x.fenced(), second).then(State.DISPATCHED)
        assert operation.publication is not None
        assert operation.publication.predecessor == x.identities("old")

    def test_a_proof_speaks_of_every_replica(self) -> None:
        three = ("a", "b", "c")
        history = (
            x.admitted(replicas=three),
            *x.UNTIL[State.ADMITTED][1:],
            x.opened(),
            x.source_observed(),
            x.candidate_staged(replicas=three),
            x.staged_observed(),
            x.gates_evaluated(),
            x.capsule_written(replicas=three),
            x.dispatched(replicas=three),
        )
        given(*history).when(x.proven(replicas=("a", "b"))).then_illegal("every replica")
        assert given(*history).when(x.proven(replicas=three)).then(State.COMMITTED).target_commit == "proven"

    def test_a_replica_excluded_since_is_spoken_of_no_more(self) -> None:
        three = ("a", "b", "c")
        history = (x.admitted(replicas=three), *x.UNTIL[State.DISPATCHED][1:])
        operation = given(*history).when(x.reduced("c"), x.proven(replicas=("a", "b"))).then(State.COMMITTED)
        assert operation.inventory == ("a", "b")
        given(*history).when(x.reduced()).then_illegal("some of the replicas")
        given(*history).when(x.reduced(*three)).then_illegal("some of the replicas")
        given(*history).when(x.reduced("d")).then_illegal("some of the replicas")
        given(*history).when(x.reduced("c", attempt=2)).then_illegal("another attempt")


class TestEndings:
    def test_failing_while_dispatched_is_illegal(self) -> None:
        given(*x.UNTIL[State.DISPATCHED]).when(x.failed()).then_illegal("DISPATCHED")

    @pytest.mark.parametrize(
        ("state", "final"),
        [
            (State.ADMITTED, False),
            (State.STAGED, False),
            (State.PREPARED, False),
            (State.COMMITTED, True),
            (State.TARGET_PENDING, True),
            (State.OBSERVED, True),
            (State.GUARD_RELEASED, True),
        ],
    )
    def test_failed_is_final_only_after_the_commit(self, state: State, final: bool) -> None:
        operation = given(*x.UNTIL[state]).when(x.failed()).then(State.FAILED)
        assert operation.failure is not None
        assert operation.failure.final is final

    def test_reopening_keeps_the_fence_and_starts_anew(self) -> None:
        changed = x.process(path="corrected.csv")
        reopened = given(*x.UNTIL[State.FAILED]).when(x.reopened(changed, ("source.path",))).then(State.ADMITTED)
        assert (reopened.attempt, reopened.incarnation, reopened.generation) == (1, 2, None)
        assert reopened.process.source.path == "corrected.csv"
        given(*x.UNTIL[State.FAILED], x.reopened()).when(x.started(1)).then_illegal("fence")

    def test_the_receipt_that_completes_is_this_attempts(self) -> None:
        given(*x.UNTIL[State.GUARD_RELEASED]).when(x.completed(receipt=x.GUARD)).then_illegal("receipt")
        later = (*x.UNTIL[State.GUARD_RELEASED], x.started(2))
        given(*later).when(x.completed(2)).then_illegal("receipt")
        given(*later).when(x.receipt(2), x.completed(2)).then(State.COMPLETE)

    def test_a_guard_is_released_only_with_a_receipt_of_this_attempt(self) -> None:
        given(*x.UNTIL[State.OBSERVED], x.receipt(), x.started(2)).when(x.released(2)).then_illegal("receipt")

    def test_the_guard_that_is_released_is_the_one_that_is_held(self) -> None:
        given(*x.UNTIL[State.OBSERVED], x.receipt()).when(x.released(guard=x.RECEIPT)).then_illegal()

    def test_a_receipt_for_another_core_is_refused(self) -> None:
        given(*x.UNTIL[State.OBSERVED]).when(x.receipt(observes=False)).then_illegal("core is another's")


class TestOtherFlows:
    V1_COMMITTED = (
        x.admitted(configured=V1),
        *x.UNTIL[State.STAGED][1:],
        x.capsule_written(observes=False),
        x.dispatched(),
        x.proven(),
    )
    PLAIN_STAGED = (x.admitted(configured=PLAIN), *x.UNTIL[State.STAGED][1:])

    def test_version_one_owes_no_target_observation(self) -> None:
        given(*self.V1_COMMITTED).when(x.pending()).then_illegal()
        given(*self.V1_COMMITTED).when(x.completed()).then_illegal("receipt")
        given(*self.V1_COMMITTED).when(x.receipt(observes=False), x.completed()).then(State.COMPLETE)

    def test_without_durability_there_is_no_capsule(self) -> None:
        given(*self.PLAIN_STAGED).when(x.capsule_written(observes=False)).then_illegal()
        given(*self.PLAIN_STAGED).when(x.dispatched(), x.proven(), x.completed(receipt=None)).then(State.COMPLETE)

    def test_durable_is_never_dispatched_without_a_capsule(self) -> None:
        given(*x.UNTIL[State.STAGED]).when(x.dispatched()).then_illegal()

    def test_warn_only_waives_an_observation(self) -> None:
        operation = given(*x.UNTIL[State.TARGET_PENDING]).when(x.waived()).then(State.OBSERVED)
        assert operation.waived == "it took too long"
        given(*x.UNTIL[State.TARGET_PENDING], x.observation_abandoned()).when(x.waived()).then_illegal()


@pytest.mark.parametrize(
    ("state", "capsule", "commit", "governance"),
    [
        (State.ADMITTED, None, "not_started", "blocked"),
        (State.STAGED, None, "not_started", "blocked"),
        (State.PREPARED, "PREPARED", "not_started", "blocked"),
        (State.DISPATCHED, "PREPARED", "unknown", "blocked"),
        (State.COMMITTED, "PREPARED", "proven", "blocked"),
        (State.TARGET_PENDING, "TARGET_PENDING", "proven", "blocked"),
        (State.OBSERVED, "TARGET_PENDING", "proven", "blocked"),
        (State.GUARD_RELEASED, "TARGET_PENDING", "proven", "blocked"),
        (State.COMPLETE, "COMPLETE", "proven", "complete"),
        (State.FAILED, None, "not_started", "blocked"),
        (State.RETIRED, None, "not_started", "blocked"),
    ],
)
def test_what_each_state_says_of_capsule_commit_and_governance(
    state: State, capsule: str | None, commit: str, governance: str
) -> None:
    operation = given(*x.UNTIL[state]).when().then(state)
    assert (operation.capsule_state, operation.target_commit, operation.governance) == (capsule, commit, governance)


class TestReviewedRecovery:
    @pytest.mark.parametrize(
        "state", [s for s in State if s not in (State.NEW, State.COMPLETE, State.FAILED, State.RETIRED)]
    )
    def test_a_person_retires_what_is_neither_complete_nor_ended(self, state: State) -> None:
        operation = given(*x.UNTIL[state]).when(x.retired(review=x.REVIEW)).then(State.RETIRED)
        assert operation.guard is None
        assert operation.retired is not None
        assert operation.retired.review == x.REVIEW

    def test_the_exit_of_what_failed_for_good_is_a_person(self) -> None:
        given(*x.FAILED_FOR_GOOD).when(x.retired(review=x.REVIEW)).then(State.RETIRED)
        given(*x.UNTIL[State.FAILED]).when(x.retired(review=x.REVIEW)).then_illegal()
        given(*x.UNTIL[State.COMPLETE]).when(x.retired(review=x.REVIEW)).then_illegal()

    @pytest.mark.parametrize("state", [State.COMPLETE, State.RETIRED])
    def test_a_person_lets_the_same_command_load_anew(self, state: State) -> None:
        operation = given(*x.UNTIL[state]).when(x.reopened(review=x.REVIEW)).then(State.ADMITTED)
        assert (operation.incarnation, operation.generation, operation.publication) == (2, None, None)
