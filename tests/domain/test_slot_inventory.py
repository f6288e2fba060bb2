"""The slot while its platform changes: replicas come and go, and a person lets the target be what it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone.domain import events as e
from dpone.domain.identity import OperationKey

from . import examples as x
from . import platform_examples as y
from .specification import given

KEPT = (
    *x.DONE,
    x.claimed(x.NEXT_RUN),
    x.published(x.OTHER_GENERATION, x.NEXT_RUN, {"embedded": "kept_pred"}),
    x.vacated(x.NEXT_RUN, x.OTHER_GENERATION),
)
BOTH = ("embedded", "replica_2")


class TestInventoryChanges:
    def test_a_replica_that_comes_holds_the_live_table(self) -> None:
        slot = given(slot=x.DONE).when_in_slot(y.inventory_changed(*BOTH, admitted=("replica_2",))).then()
        assert slot.live is not None
        assert sorted(slot.live.identities) == ["embedded", "replica_2"]
        assert slot.inventory == BOTH

    def test_a_slot_without_a_table_records_the_inventory_alone(self) -> None:
        change = y.inventory_changed(*BOTH, admitted=BOTH, live=None)
        assert given(slot=(x.slot_opened(),)).when_in_slot(change).then().inventory == BOTH
        given(slot=(x.slot_opened(),)).when_in_slot(y.inventory_changed("embedded")).then_illegal("not known")

    def test_none_comes_while_an_operation_holds_the_slot(self) -> None:
        change = y.inventory_changed(*BOTH, admitted=("replica_2",))
        given(slot=x.LIVE).when_in_slot(change).then_illegal("holds the slot")

    def test_one_leaves_whoever_holds_the_slot(self) -> None:
        history = (*x.DONE, y.inventory_changed(*BOTH, admitted=("replica_2",)), x.claimed(x.NEXT_RUN))
        slot = given(slot=history).when_in_slot(y.inventory_changed("embedded")).then()
        assert slot.live is not None
        assert list(slot.live.identities) == ["embedded"]

    def test_the_live_table_stays_the_same_one_on_every_replica(self) -> None:
        other = y.inventory_changed(*BOTH, admitted=("replica_2",), live="old")
        given(slot=x.DONE).when_in_slot(other).then_illegal("another one")
        partial = replace(y.inventory_changed(*BOTH, admitted=("replica_2",)), live=x.identities())
        given(slot=x.DONE).when_in_slot(partial).then_illegal("not known")

    def test_who_comes_is_in_the_inventory(self) -> None:
        change = y.inventory_changed("embedded", admitted=("replica_2",))
        given(slot=x.DONE).when_in_slot(change).then_illegal("not in the inventory")

    def test_what_waits_on_a_replica_that_left_is_no_longer_waited_for(self) -> None:
        history = (*KEPT, x.retirement("leftover"), x.deferred("leftover"))
        change = replace(
            y.inventory_changed("replica_2", admitted=("replica_2",)), live=x.identities("new", ("replica_2",))
        )
        slot = given(slot=history).when_in_slot(change).then()
        assert (slot.kept, dict(slot.retirements), dict(slot.deferred)) == ((), {}, {})

    def test_what_waits_on_a_replica_that_stayed_is(self) -> None:
        history = (*KEPT, x.retirement("leftover"))
        slot = given(slot=history).when_in_slot(y.inventory_changed(*BOTH, admitted=("replica_2",))).then()
        assert [item.generation for item in slot.kept] == [x.GENERATION]
        assert list(slot.retirements) == ["leftover"]


class TestAdoption:
    def test_the_table_is_live_and_no_operation_published_it(self) -> None:
        live = given(slot=(x.slot_opened(),)).when_in_slot(y.adopted("embedded")).then().live
        assert live is not None
        assert (live.adopted, live.generation, live.operation, live.rows) == (True, x.OTHER_GENERATION, "", 7)
        assert live.identities == x.identities("adopted")

    def test_absence_is_adopted_too(self) -> None:
        assert given(slot=x.DONE).when_in_slot(y.adopted(generation=None)).then().live is None

    @pytest.mark.parametrize("history", [x.HELD, x.LIVE, x.GUARDED])
    def test_nobody_may_hold_the_slot(self, history: tuple[e.Event, ...]) -> None:
        given(slot=history).when_in_slot(y.adopted("embedded")).then_illegal("holds the slot")

    def test_it_speaks_of_this_target(self) -> None:
        other = replace(
            y.adopted("embedded"), target=OperationKey("d", "r", "p", "platform-1", "sales", "other").target
        )
        given(slot=x.DONE).when_in_slot(other).then_illegal("another target")

    def test_a_table_is_a_generation_with_rows_and_identities_or_nothing(self) -> None:
        for half in (
            replace(y.adopted("embedded"), generation=None),
            replace(y.adopted("embedded"), rows=None),
            replace(y.adopted("embedded"), definition=None),
            replace(y.adopted("embedded"), identities={}),
        ):
            given(slot=x.DONE).when_in_slot(half).then_illegal("generation")

    def test_an_earlier_run_is_no_longer_live(self) -> None:
        given(slot=(*x.DONE, y.adopted("embedded"))).when_in_slot(x.validated()).then_illegal("another generation")

    def test_it_is_kept_as_a_predecessor_and_never_dropped_by_itself(self) -> None:
        history = (
            *x.DONE,
            y.adopted("embedded"),
            x.claimed(x.NEXT_RUN),
            x.published(x.RECEIPT, x.NEXT_RUN, {"embedded": "kept_pred"}),
        )
        (kept,) = given(slot=history).when_in_slot().then().kept
        assert (kept.adopted, kept.names) == (True, {"embedded": "kept_pred"})
        given(slot=history).when_in_slot(x.retirement("kept_pred")).then_illegal("never dropped")
