"""The target's slot: one owner, one guard, a live generation, and drops that are opened before they are done."""

from __future__ import annotations

import pytest

from dpone.domain import events as e
from dpone.domain.identity import OperationKey, operation_id
from dpone.domain.operation import State

from . import examples as x
from .specification import given

NEXT = str(operation_id(x.NEXT_RUN))


class TestOwnership:
    def test_nothing_precedes_the_opening(self) -> None:
        given().when_in_slot(x.claimed()).then_illegal("never opened")

    def test_it_opens_once(self) -> None:
        given(slot=x.HELD).when_in_slot(x.slot_opened()).then_illegal("open already")

    def test_a_free_slot_is_claimed(self) -> None:
        slot = given(slot=(x.slot_opened(),)).when_in_slot(x.claimed()).then()
        assert slot.holder is not None
        assert slot.holder.operation == x.OPERATION

    @pytest.mark.parametrize("key", [x.NEXT_RUN, x.OTHER_DAG])
    def test_a_held_slot_is_not_claimed_without_displacing(self, key: OperationKey) -> None:
        given(slot=x.HELD).when_in_slot(x.claimed(key)).then_illegal("another operation holds")

    def test_a_later_run_displaces_by_name(self) -> None:
        slot = given(slot=x.HELD).when_in_slot(x.claimed(x.NEXT_RUN, x.OPERATION)).then()
        assert slot.holder is not None
        assert slot.holder.operation == NEXT

    def test_another_dag_displaces_nobody(self) -> None:
        given(slot=x.HELD).when_in_slot(x.claimed(x.OTHER_DAG, x.OPERATION)).then_illegal("not a later run")

    def test_the_same_run_displaces_nobody(self) -> None:
        given(slot=x.HELD).when_in_slot(x.claimed(x.KEY, x.OPERATION)).then_illegal("not a later run")

    def test_only_the_holder_vacates_and_publishes(self) -> None:
        given(slot=x.HELD).when_in_slot(x.vacated(x.NEXT_RUN)).then_illegal("does not hold")
        given(slot=x.HELD).when_in_slot(x.published(key=x.NEXT_RUN)).then_illegal("does not hold")
        assert given(slot=x.LIVE).when_in_slot(x.vacated()).then().holder is None


class TestAHold:
    def test_it_stops_new_claims_and_displacement_alike(self) -> None:
        opened = (x.slot_opened(), x.slot_held())
        given(slot=opened).when_in_slot(x.claimed()).then_illegal("stopped new claims")
        given(slot=(*x.HELD, x.slot_held())).when_in_slot(x.claimed(x.NEXT_RUN, x.OPERATION)).then_illegal("stopped")
        assert given(slot=(*opened, x.slot_unheld())).when_in_slot(x.claimed()).then().held is None

    def test_the_owner_goes_on(self) -> None:
        assert given(slot=(*x.HELD, x.slot_held())).when_in_slot(x.published()).then().held == x.REVIEW

    def test_it_is_taken_once_and_ended_once(self) -> None:
        given(slot=(x.slot_opened(), x.slot_held())).when_in_slot(x.slot_held()).then_illegal("held already")
        given(slot=(x.slot_opened(),)).when_in_slot(x.slot_unheld()).then_illegal("not held")


class TestTheReadersGuard:
    def test_it_is_acquired_once(self) -> None:
        given(slot=x.GUARDED).when_in_slot(x.acquired(x.RECEIPT)).then_illegal("guard is held")

    def test_only_the_holder_acquires_it(self) -> None:
        given(slot=x.LIVE).when_in_slot(x.acquired(operation=NEXT)).then_illegal("does not hold")

    def test_a_later_attempt_of_the_same_operation_takes_it_over(self) -> None:
        slot = given(slot=x.GUARDED).when_in_slot(x.taken_over()).then()
        assert slot.guard is not None
        assert (slot.guard.id, slot.guard.attempt) == (x.RECEIPT, 2)

    def test_another_operation_does_not_take_it_over(self) -> None:
        given(slot=x.GUARDED).when_in_slot(x.taken_over(operation=NEXT)).then_illegal("not held")

    def test_a_free_guard_is_not_taken_over(self) -> None:
        given(slot=x.LIVE).when_in_slot(x.taken_over()).then_illegal("not held")

    def test_only_the_guard_that_is_held_is_released(self) -> None:
        given(slot=(*x.GUARDED, x.taken_over())).when_in_slot(x.released()).then_illegal("not held")
        assert given(slot=x.GUARDED).when_in_slot(x.released()).then().guard is None

    def test_while_it_is_held_nobody_vacates_or_claims(self) -> None:
        given(slot=x.GUARDED).when_in_slot(x.vacated()).then_illegal("guard is held")
        given(slot=x.GUARDED).when_in_slot(x.claimed(x.NEXT_RUN, x.OPERATION)).then_illegal("guard is held")


class TestGenerations:
    SEALED = (*x.DONE, x.claimed(x.NEXT_RUN), x.published(x.OTHER_GENERATION, x.NEXT_RUN, {"embedded": "kept_pred"}))

    def test_the_proven_generation_is_live(self) -> None:
        live = given(slot=x.HELD).when_in_slot(x.published()).then().live
        assert live is not None
        assert live.generation == x.GENERATION

    def test_the_predecessor_is_kept_under_its_sealed_name_with_its_own_identity(self) -> None:
        (kept,) = given(slot=self.SEALED).when_in_slot().then().kept
        assert (kept.generation, kept.names) == (x.GENERATION, {"embedded": "kept_pred"})
        assert kept.identities == x.identities()

    def test_a_kept_predecessor_leaves_the_list_when_its_drop_is_opened(self) -> None:
        slot = given(slot=self.SEALED).when_in_slot(x.retirement("kept_pred")).then()
        assert slot.kept == ()
        assert list(slot.retirements) == ["kept_pred"]

    def test_a_replay_is_validated_only_for_the_live_generation_of_a_free_slot(self) -> None:
        given(slot=x.DONE).when_in_slot(x.validated()).then()
        given(slot=x.DONE).when_in_slot(x.validated(generation=x.OTHER_GENERATION)).then_illegal("another generation")
        given(slot=(*x.DONE, x.claimed(x.NEXT_RUN))).when_in_slot(x.validated()).then_illegal("holds the slot")


class TestRetirements:
    def test_a_drop_is_opened_once(self) -> None:
        given(slot=(*x.DONE, x.retirement())).when_in_slot(x.retirement()).then_illegal("open already")

    @pytest.mark.parametrize("event", [x.table_retired(), x.deferred()])
    def test_what_was_not_opened_is_neither_done_nor_deferred(self, event: e.Event) -> None:
        given(slot=x.DONE).when_in_slot(event).then_illegal("no such retirement")

    def test_a_deferred_drop_stays_open_until_it_is_done(self) -> None:
        deferred = given(slot=(*x.DONE, x.retirement())).when_in_slot(x.deferred()).then()
        assert len(deferred.retirements) == len(deferred.deferred) == 1
        done = given(slot=(*x.DONE, x.retirement(), x.deferred())).when_in_slot(x.table_retired()).then()
        assert (dict(done.retirements), dict(done.deferred)) == ({}, {})


@pytest.mark.parametrize("event", x.UNTIL[State.PREPARED], ids=lambda event: type(event).__name__)
def test_an_operations_event_does_not_belong_to_a_slot(event: e.Event) -> None:
    given(slot=x.HELD).when_in_slot(event).then_illegal("does not belong")
