"""The order of steps: one test for each line of the transition table and for each rule that refuses."""

from __future__ import annotations

import pytest

from dpone.domain.errors import ErrorCode
from dpone.domain.identity import OperationKey, operation_id
from dpone.domain.operation import State
from dpone.domain.steps import (
    AbandonStaging,
    AcceptReceipt,
    Claim,
    Complete,
    Dispatch,
    EvaluateGates,
    Finished,
    Observe,
    Rehearse,
    ReleaseGuard,
    Settle,
    Stage,
    StartAttempt,
    ValidateReplay,
    WorkOff,
    WriteCapsule,
)

from . import examples as x
from . import platform_examples as y
from .specification import given

CHANGED = x.process(path="other.csv")
PLAIN = x.process(durable=False, observes=False)
V1 = x.process(observes=False)
OLD = x.retirement()
HOLDING = (
    State.ADMITTED,
    State.STAGED,
    State.PREPARED,
    State.DISPATCHED,
    State.COMMITTED,
    State.TARGET_PENDING,
    State.OBSERVED,
    State.GUARD_RELEASED,
)


class TestTheTable:
    """State by state, for the attempt that holds the fence."""

    def test_new_claims(self) -> None:
        given().when_asked().then_step(Claim())

    def test_admitted_without_generation_stages(self) -> None:
        given(*x.UNTIL[State.ADMITTED], slot=x.HELD).when_asked(attempt=1).then_step(Stage())

    def test_admitted_works_open_retirements_off_before_it_stages(self) -> None:
        given(*x.UNTIL[State.ADMITTED], slot=(*x.HELD, OLD)).when_asked(attempt=1).then_step(WorkOff(OLD.name))

    def test_a_retirement_that_was_tried_does_not_block_staging(self) -> None:
        held = given(*x.UNTIL[State.ADMITTED], slot=(*x.HELD, OLD, x.deferred()))
        held.when_asked(attempt=1, deferred=(OLD.name,)).then_step(Stage())

    def test_the_next_attempt_tries_a_deferred_drop_again(self) -> None:
        held = given(*x.UNTIL[State.ADMITTED], x.started(2), slot=(*x.HELD, OLD, x.deferred()))
        held.when_asked(attempt=2).then_step(WorkOff(OLD.name))

    def test_an_open_generation_is_abandoned(self) -> None:
        given(*x.UNTIL[State.ADMITTED], x.opened(), slot=x.HELD).when_asked(attempt=1).then_step(
            AbandonStaging(x.GENERATION)
        )

    def test_a_staged_candidate_is_rehearsed_by_the_reader(self) -> None:
        given(*x.STAGED_CANDIDATE, slot=x.HELD).when_asked(attempt=1).then_step(Rehearse(by_reader=True))

    def test_without_a_target_obligation_the_candidate_is_counted_here(self) -> None:
        staged = (x.admitted(configured=V1), *x.STAGED_CANDIDATE[1:])
        given(*staged, slot=x.HELD).when_asked(attempt=1).then_step(Rehearse(by_reader=False))

    def test_an_observed_candidate_meets_its_gates(self) -> None:
        given(*x.STAGED_CANDIDATE, x.staged_observed(), slot=x.HELD).when_asked(attempt=1).then_step(EvaluateGates())

    def test_staged_writes_the_capsule(self) -> None:
        given(*x.UNTIL[State.STAGED], slot=x.HELD).when_asked(attempt=1).then_step(WriteCapsule())

    def test_prepared_dispatches(self) -> None:
        given(*x.UNTIL[State.PREPARED], slot=x.HELD).when_asked(attempt=1).then_step(Dispatch())

    def test_dispatched_settles_and_never_sends_from_rebuilt_state(self) -> None:
        given(*x.UNTIL[State.DISPATCHED], slot=x.HELD).when_asked(attempt=1).then_step(Settle())

    def test_committed_observes(self) -> None:
        given(*x.UNTIL[State.COMMITTED], slot=x.LIVE).when_asked(attempt=1).then_step(Observe(take_over=False))

    def test_target_pending_without_a_guard_acquires_one(self) -> None:
        pending = (*x.UNTIL[State.TARGET_PENDING], x.observation_abandoned())
        given(*pending, slot=x.LIVE).when_asked(attempt=1).then_step(Observe(take_over=False))

    def test_target_pending_with_a_guard_takes_it_over(self) -> None:
        pending = (*x.UNTIL[State.TARGET_PENDING], x.started(2))
        given(*pending, slot=x.GUARDED).when_asked(attempt=2).then_step(Observe(take_over=True))

    def test_observed_needs_a_receipt(self) -> None:
        given(*x.UNTIL[State.OBSERVED], slot=x.GUARDED).when_asked(attempt=1).then_step(AcceptReceipt())

    def test_observed_with_a_receipt_releases_the_guard(self) -> None:
        given(*x.UNTIL[State.OBSERVED], x.receipt(), slot=x.GUARDED).when_asked(attempt=1).then_step(ReleaseGuard())

    def test_an_earlier_attempts_receipt_counts_for_nothing_when_observed(self) -> None:
        later = (*x.UNTIL[State.OBSERVED], x.receipt(), x.started(2))
        given(*later, slot=x.GUARDED).when_asked(attempt=2).then_step(AcceptReceipt())

    def test_guard_released_completes(self) -> None:
        given(*x.UNTIL[State.GUARD_RELEASED], slot=x.LIVE).when_asked(attempt=1).then_step(Complete())

    def test_an_earlier_attempts_receipt_counts_for_nothing_when_released(self) -> None:
        later = (*x.UNTIL[State.GUARD_RELEASED], x.started(2))
        given(*later, slot=x.LIVE).when_asked(attempt=2).then_step(AcceptReceipt())

    def test_complete_is_finished_for_the_attempt_that_completed(self) -> None:
        given(*x.UNTIL[State.COMPLETE], slot=x.DONE).when_asked(attempt=1).then_step(Finished())

    def test_after_completion_retirements_are_worked_off(self) -> None:
        given(*x.UNTIL[State.COMPLETE], slot=(*x.DONE, OLD)).when_asked(attempt=1).then_step(WorkOff(OLD.name))

    def test_after_completion_a_successors_retirements_are_left_to_it(self) -> None:
        slot = (*x.DONE, OLD, x.claimed(x.NEXT_RUN))
        given(*x.UNTIL[State.COMPLETE], slot=slot).when_asked(attempt=1).then_step(Finished())

    def test_a_validated_replay_drops_nothing(self) -> None:
        replayed = (*x.UNTIL[State.COMPLETE], x.started(2), x.validated(2))
        given(*replayed, slot=(*x.DONE, OLD)).when_asked(attempt=2).then_step(Finished())


class TestVersionOneCapsule:
    """Without a target obligation ``COMMITTED`` goes to receipt and completion."""

    COMMITTED = (
        x.admitted(configured=V1),
        *x.UNTIL[State.STAGED][1:],
        x.capsule_written(observes=False),
        x.dispatched(),
        x.proven(),
    )

    def test_committed_needs_a_receipt(self) -> None:
        given(*self.COMMITTED, slot=x.LIVE).when_asked(attempt=1).then_step(AcceptReceipt())

    def test_committed_with_a_receipt_completes(self) -> None:
        given(*self.COMMITTED, x.receipt(observes=False), slot=x.LIVE).when_asked(attempt=1).then_step(Complete())

    def test_the_receipt_must_be_this_attempts(self) -> None:
        later = (*self.COMMITTED, x.receipt(observes=False), x.started(2))
        given(*later, slot=x.LIVE).when_asked(attempt=2).then_step(AcceptReceipt())


class TestNotDurable:
    """Same loop, slot, intents and proof; no capsule, no target observation, no guard, no receipt."""

    STAGED = (x.admitted(configured=PLAIN), *x.UNTIL[State.STAGED][1:])

    def test_staged_dispatches_without_a_capsule(self) -> None:
        given(*self.STAGED, slot=x.HELD).when_asked(attempt=1).then_step(Dispatch())

    def test_committed_completes_without_a_receipt(self) -> None:
        given(*self.STAGED, x.dispatched(), x.proven(), slot=x.LIVE).when_asked(attempt=1).then_step(Complete())

    def test_repeating_a_finished_run_loads_again(self) -> None:
        done = (*self.STAGED, x.dispatched(), x.proven(), x.completed(receipt=None))
        given(*done, slot=x.DONE).when_asked(x.request(configured=PLAIN)).then_step(Claim(reopen=True))

    def test_it_is_refused_while_another_operation_holds_the_target(self) -> None:
        done = (*self.STAGED, x.dispatched(), x.proven(), x.completed(receipt=None))
        held = given(*done, slot=(*x.DONE, x.claimed(x.OTHER_DAG)), holder=x.UNTIL[State.ADMITTED])
        held.when_asked(x.request(configured=PLAIN)).then_refused(ErrorCode.TARGET_BLOCKED, "day")


class TestTheSameCommandAgain:
    """What precedes an attempt: a ladder of checks that append nothing."""

    @pytest.mark.parametrize("state", HOLDING)
    def test_every_state_in_between_is_taken_on_where_it_stands(self, state: State) -> None:
        given(*x.UNTIL[state], slot=x.HELD).when_asked().then_step(StartAttempt())

    def test_complete_is_validated(self) -> None:
        given(*x.UNTIL[State.COMPLETE], slot=x.DONE).when_asked().then_step(ValidateReplay())

    def test_complete_after_a_successor_published_is_a_mismatch_that_names_it(self) -> None:
        succeeded = (*x.DONE, x.claimed(x.NEXT_RUN), x.published(x.OTHER_GENERATION, x.NEXT_RUN), x.vacated(x.NEXT_RUN))
        given(*x.UNTIL[State.COMPLETE], slot=succeeded).when_asked().then_refused(
            ErrorCode.EVIDENCE_MISMATCH, "tuesday", str(operation_id(x.NEXT_RUN))
        )

    def test_complete_after_an_adoption_is_a_mismatch_that_says_so(self) -> None:
        adopted = (*x.DONE, y.adopted("embedded"))
        refused = given(*x.UNTIL[State.COMPLETE], slot=adopted).when_asked()
        refused.then_refused(ErrorCode.EVIDENCE_MISMATCH, "a table that was adopted")

    def test_complete_while_a_successor_holds_the_slot_is_blocked(self) -> None:
        held = given(*x.UNTIL[State.COMPLETE], slot=(*x.DONE, x.claimed(x.NEXT_RUN)), holder=x.UNTIL[State.STAGED])
        held.when_asked().then_refused(ErrorCode.TARGET_BLOCKED, "tuesday", "STAGED")

    def test_retired_is_refused_and_names_who_displaced_it(self) -> None:
        by = str(operation_id(x.NEXT_RUN))
        retired = (*x.UNTIL[State.ADMITTED], x.retired(by))
        given(*retired, slot=x.HELD).when_asked().then_refused(ErrorCode.RETIRED, by[:8])

    def test_failed_before_dispatch_claims_again(self) -> None:
        given(*x.UNTIL[State.FAILED], slot=(*x.HELD, x.vacated())).when_asked().then_step(Claim(reopen=True))

    def test_failed_before_dispatch_takes_a_changed_configuration_and_records_the_fields(self) -> None:
        given(*x.UNTIL[State.FAILED], slot=(*x.HELD, x.vacated())).when_asked(x.request(configured=CHANGED)).then_step(
            Claim(reopen=True, changed=("source.path",))
        )

    def test_failed_before_dispatch_is_blocked_by_another_holder(self) -> None:
        slot = (*x.HELD, x.vacated(), x.claimed(x.OTHER_DAG))
        held = given(*x.UNTIL[State.FAILED], slot=slot, holder=x.UNTIL[State.ADMITTED])
        held.when_asked().then_refused(ErrorCode.TARGET_BLOCKED, "day")

    def test_failed_after_the_commit_is_final(self) -> None:
        given(*x.FAILED_FOR_GOOD, slot=x.LIVE).when_asked().then_refused(ErrorCode.EVIDENCE_INVALID)

    @pytest.mark.parametrize("state", [*HOLDING, State.COMPLETE])
    def test_another_configuration_is_a_conflict_that_names_the_fields(self, state: State) -> None:
        other = x.request(configured=CHANGED)
        given(*x.UNTIL[state], slot=x.HELD).when_asked(other).then_refused(ErrorCode.IDENTITY_CONFLICT, "source.path")

    def test_retired_comes_before_the_conflict(self) -> None:
        other = x.request(configured=CHANGED)
        given(*x.UNTIL[State.RETIRED], slot=x.HELD).when_asked(other).then_refused(ErrorCode.RETIRED)


class TestSuccessors:
    """One owner per target."""

    @pytest.mark.parametrize("state", [State.ADMITTED, State.STAGED, State.PREPARED])
    def test_a_later_run_displaces_a_holder_that_has_not_dispatched(self, state: State) -> None:
        held = given(slot=x.HELD, holder=x.UNTIL[state])
        held.when_asked(x.request(x.NEXT_RUN)).then_step(Claim(displaces=x.OPERATION))

    @pytest.mark.parametrize("state", HOLDING[3:])
    def test_a_later_run_is_blocked_once_the_holder_dispatched(self, state: State) -> None:
        held = given(slot=x.HELD, holder=x.UNTIL[state])
        held.when_asked(x.request(x.NEXT_RUN)).then_refused(
            ErrorCode.TARGET_BLOCKED, "monday", str(state), f"dpone ops explain {x.OPERATION}"
        )

    @pytest.mark.parametrize("state", HOLDING)
    def test_another_dag_is_blocked_whatever_the_state(self, state: State) -> None:
        held = given(slot=x.HELD, holder=x.UNTIL[state])
        held.when_asked(x.request(x.OTHER_DAG)).then_refused(ErrorCode.TARGET_BLOCKED, "night", "monday", str(state))

    def test_a_holder_that_failed_for_good_keeps_the_target(self) -> None:
        held = given(slot=x.LIVE, holder=x.FAILED_FOR_GOOD)
        held.when_asked(x.request(x.NEXT_RUN)).then_refused(ErrorCode.TARGET_BLOCKED, "FAILED")

    def test_open_retirements_do_not_block_a_claim(self) -> None:
        given(slot=(*x.DONE, OLD)).when_asked(x.request(x.NEXT_RUN)).then_step(Claim())


class TestAHold:
    """A person stopped new claims."""

    HELD = (x.slot_opened(), x.slot_held())

    @pytest.mark.parametrize("key", [x.KEY, x.NEXT_RUN, x.OTHER_DAG])
    def test_nobody_claims(self, key: OperationKey) -> None:
        asked = given(slot=self.HELD).when_asked(x.request(key))
        asked.then_refused(ErrorCode.TARGET_BLOCKED, "Ada", "the server is gone", "dpone ops unhold sales.orders")

    def test_nobody_displaces(self) -> None:
        held = given(slot=(*x.HELD, x.slot_held()), holder=x.UNTIL[State.ADMITTED])
        held.when_asked(x.request(x.NEXT_RUN)).then_refused(ErrorCode.TARGET_BLOCKED, "Ada")

    def test_what_failed_before_is_not_claimed_again(self) -> None:
        given(*x.UNTIL[State.FAILED], slot=self.HELD).when_asked().then_refused(ErrorCode.TARGET_BLOCKED, "Ada")

    def test_the_owner_and_a_completed_run_go_on(self) -> None:
        given(*x.UNTIL[State.PREPARED], slot=(*x.HELD, x.slot_held())).when_asked().then_step(StartAttempt())
        given(*x.UNTIL[State.COMPLETE], slot=(*x.DONE, x.slot_held())).when_asked().then_step(ValidateReplay())


class TestStaleAttempts:
    """A process whose fence is not the head's does nothing more."""

    @pytest.mark.parametrize("state", HOLDING)
    def test_a_higher_fence_supersedes(self, state: State) -> None:
        newer = (*x.UNTIL[state], x.started(2))
        given(*newer, slot=x.HELD).when_asked(attempt=1).then_refused(ErrorCode.SUPERSEDED, "2")

    def test_a_displaced_attempt_finds_its_stream_ended(self) -> None:
        given(*x.UNTIL[State.RETIRED], slot=x.HELD).when_asked(attempt=1).then_refused(ErrorCode.RETIRED)
