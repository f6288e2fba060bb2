"""Settling: every standing of a replica, their combinations over three, and the one next thing that is safe."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from dpone.domain.names import candidate_name, generation_of, predecessor_name, rebuilding_name_of
from dpone.domain.ports import SwapForm
from dpone.domain.publication import (
    Expectation,
    Fence,
    Proven,
    Rebuild,
    Redispatch,
    Rename,
    Seal,
    Settlement,
    Standing,
    Stop,
    classify,
    ready_to_dispatch,
    settle,
)
from dpone.domain.tables import ReplicaLook, TableIdentity

GENERATION = "11111111-1111-4111-8111-111111111111"
THREE = ("a", "b", "c")
FIRST = candidate_name("t", GENERATION, 1, 1)
FRESH = candidate_name("t", GENERATION, 2, 7)
KEPT = predecessor_name("t", GENERATION)
RETIRED = f"{FIRST}_retired_9"


def new(replica: str) -> TableIdentity:
    return TableIdentity(f"new@{replica}", "sha256:1")


def old(replica: str) -> TableIdentity:
    return TableIdentity(f"old@{replica}", "sha256:0")


FOREIGN = TableIdentity("somebody's", "sha256:9")
EXPECTED = Expectation("t", GENERATION, {r: new(r) for r in THREE}, {r: old(r) for r in THREE})
FIRST_PUBLICATION = Expectation("t", GENERATION, EXPECTED.new, {})


def look(replica: str, standing: Standing, name: str = FIRST) -> ReplicaLook:
    """What a replica of this standing shows; ``name`` is where the table that is not live stands."""
    match standing:
        case Standing.UNREACHABLE:
            return ReplicaLook(replica, reachable=False)
        case Standing.DESIRED:
            return ReplicaLook(replica, tables={"t": new(replica), name: old(replica)})
        case Standing.PREDECESSOR:
            return ReplicaLook(replica, tables={"t": old(replica), name: new(replica)})
        case Standing.MISSING:
            return ReplicaLook(replica, tables={name: new(replica)})
        case Standing.LOST:
            return ReplicaLook(replica, tables={"t": old(replica)})
        case Standing.FOREIGN:
            return ReplicaLook(replica, tables={"t": FOREIGN, name: new(replica)})


def sealed(replica: str) -> ReplicaLook:
    return look(replica, Standing.DESIRED, KEPT)


def settled(*looks: ReplicaLook, again: bool = False, expected: Expectation = EXPECTED) -> Settlement:
    return settle(looks, expected, FRESH, looked_after_seal=again)


class TestStandings:
    @pytest.mark.parametrize("standing", Standing)
    def test_each_is_recognised(self, standing: Standing) -> None:
        assert classify(look("a", standing), EXPECTED) is standing

    def test_no_table_at_all_is_lost(self) -> None:
        assert classify(ReplicaLook("a"), EXPECTED) is Standing.LOST

    def test_lost_is_lost_even_where_nothing_was_expected_before(self) -> None:
        assert classify(ReplicaLook("a"), FIRST_PUBLICATION) is Standing.LOST

    def test_before_a_first_publication_no_table_is_the_predecessor(self) -> None:
        assert classify(look("a", Standing.MISSING), FIRST_PUBLICATION) is Standing.PREDECESSOR

    def test_before_a_first_publication_any_other_table_is_foreign(self) -> None:
        assert classify(look("a", Standing.PREDECESSOR), FIRST_PUBLICATION) is Standing.FOREIGN

    def test_the_same_table_altered_is_foreign(self) -> None:
        altered = ReplicaLook("a", tables={"t": TableIdentity("new@a", "sha256:other"), FIRST: old("a")})
        assert classify(altered, EXPECTED) is Standing.FOREIGN

    def test_the_new_table_is_found_under_any_name(self) -> None:
        for name in (FIRST, FRESH, KEPT, RETIRED):
            assert classify(look("a", Standing.PREDECESSOR, name), EXPECTED) is Standing.PREDECESSOR


class TestEveryCombinationOfThreeReplicas:
    @pytest.mark.parametrize("seen", list(product(Standing, repeat=3)))
    def test_it_stops_or_rebuilds_or_fences_or_seals(self, seen: tuple[Standing, ...]) -> None:
        answer = settled(*(look(replica, standing) for replica, standing in zip(THREE, seen, strict=True)))
        stops: list[Standing] = [stop for stop in (Standing.FOREIGN, Standing.UNREACHABLE) if stop in seen]
        lost = tuple(r for r, standing in zip(THREE, seen, strict=True) if standing is Standing.LOST)
        if not stops and len(lost) == len(THREE):
            stops = [Standing.LOST]
        if stops:
            assert isinstance(answer, Stop)
            assert answer.reason is stops[0]
            assert answer.standings == dict(zip(THREE, seen, strict=True))
            return
        if lost:
            assert answer == Rebuild(lost)
            return
        lagging = [r for r, standing in zip(THREE, seen, strict=True) if standing is not Standing.DESIRED]
        if lagging:
            assert answer == Fence(tuple(Rename(replica, FIRST, FRESH) for replica in lagging))
        else:
            assert answer == Seal(tuple(Rename(replica, FIRST, KEPT) for replica in THREE))


class TestTheProof:
    def test_a_seal_is_followed_by_a_second_look(self) -> None:
        assert settled(*map(sealed, THREE)) == Seal(())
        assert settled(*map(sealed, THREE), again=True) == Proven(dict.fromkeys(THREE, KEPT))

    def test_the_second_look_finds_a_statement_that_ran_twice(self) -> None:
        back = look("b", Standing.PREDECESSOR, KEPT)
        assert settled(sealed("a"), back, sealed("c"), again=True) == Fence((Rename("b", KEPT, FRESH),))

    def test_the_second_look_finds_a_name_that_a_late_swap_could_use(self) -> None:
        late = look("b", Standing.DESIRED, FRESH)
        assert settled(sealed("a"), late, sealed("c"), again=True) == Seal((Rename("b", FRESH, KEPT),))

    def test_a_replica_that_was_not_looked_at_proves_nothing(self) -> None:
        answer = settled(sealed("a"), sealed("b"), again=True)
        assert isinstance(answer, Stop)
        assert answer.standings["c"] is Standing.UNREACHABLE

    def test_no_replica_at_all_proves_nothing(self) -> None:
        assert isinstance(settled(again=True), Stop)

    def test_a_foreign_table_under_a_candidates_name_is_not_sealed(self) -> None:
        odd = ReplicaLook("b", tables={"t": new("b"), FIRST: FOREIGN})
        answer = settled(sealed("a"), odd, sealed("c"), again=True)
        assert isinstance(answer, Stop)
        assert answer.reason is Standing.FOREIGN

    def test_a_first_publication_leaves_nothing_to_seal(self) -> None:
        looks = [ReplicaLook(r, tables={"t": new(r)}) for r in THREE]
        assert settled(*looks, again=True, expected=FIRST_PUBLICATION) == Proven({})

    def test_another_generations_leftovers_do_not_matter(self) -> None:
        leftover = candidate_name("t", "22222222-2222-4222-8222-222222222222", 1, 1)
        looks = [ReplicaLook(r, tables={"t": new(r), KEPT: old(r), leftover: FOREIGN}) for r in THREE]
        assert settled(*looks, again=True) == Proven(dict.fromkeys(THREE, KEPT))

    def test_a_predecessor_that_somebody_dropped_is_not_kept(self) -> None:
        looks = [sealed("a"), sealed("b"), ReplicaLook("c", tables={"t": new("c")})]
        assert settled(*looks, again=True) == Proven({"a": KEPT, "b": KEPT})


class TestTheFence:
    def test_the_next_epoch_goes_to_the_lagging_replicas_alone_once_the_fence_holds(self) -> None:
        looks = [sealed("a"), look("b", Standing.PREDECESSOR, FRESH), look("c", Standing.MISSING, FRESH)]
        assert settled(*looks) == Redispatch({"b": SwapForm.EXCHANGE, "c": SwapForm.FIRST})

    def test_where_tables_cannot_be_exchanged_a_guarded_rename_is_sent(self) -> None:
        looks = [sealed("a"), look("b", Standing.PREDECESSOR, FRESH), look("c", Standing.MISSING, FRESH)]
        answer = settle(looks, EXPECTED, FRESH, looked_after_seal=False, exchanges=False)
        assert answer == Redispatch({"b": SwapForm.RENAME, "c": SwapForm.FIRST})

    def test_a_rebuilt_table_stands_behind_the_fence_already(self) -> None:
        rebuilt = ReplicaLook("c", tables={"t": old("c"), FRESH: new("c")})
        assert settled(sealed("a"), sealed("b"), rebuilt) == Redispatch({"c": SwapForm.EXCHANGE})

    def test_a_replica_that_was_admitted_later_is_none_of_its_business(self) -> None:
        later = ReplicaLook("d", tables={"t": FOREIGN})
        assert settled(*map(sealed, THREE), later, again=True) == Proven(dict.fromkeys(THREE, KEPT))

    def test_a_half_fenced_cluster_is_fenced_to_the_end_first(self) -> None:
        looks = [look("a", Standing.PREDECESSOR, FRESH), look("b", Standing.PREDECESSOR), sealed("c")]
        assert settled(*looks) == Fence((Rename("b", FIRST, FRESH),))

    def test_another_attempts_fence_is_not_this_attempts(self) -> None:
        theirs = candidate_name("t", GENERATION, 2, 6)
        assert settled(look("a", Standing.PREDECESSOR, theirs), sealed("b"), sealed("c")) == Fence(
            (Rename("a", theirs, FRESH),)
        )

    @pytest.mark.parametrize("name", [FIRST, KEPT, RETIRED])
    def test_the_new_table_is_fenced_from_under_any_name(self, name: str) -> None:
        looks = [look("a", Standing.PREDECESSOR, name), sealed("b"), sealed("c")]
        assert settled(*looks) == Fence((Rename("a", name, FRESH),))


class TestBeforeDispatch:
    def at(self, changed: Mapping[str, ReplicaLook] | None = None) -> list[ReplicaLook]:
        looks = {replica: look(replica, Standing.PREDECESSOR) for replica in THREE} | dict(changed or {})
        return list(looks.values())

    def test_every_replica_holds_predecessor_and_candidate(self) -> None:
        assert ready_to_dispatch(self.at(), EXPECTED, FIRST) is None

    def test_a_first_publication_expects_no_table(self) -> None:
        looks = [look(replica, Standing.MISSING) for replica in THREE]
        assert ready_to_dispatch(looks, FIRST_PUBLICATION, FIRST) is None

    @pytest.mark.parametrize("standing", [s for s in Standing if s is not Standing.PREDECESSOR])
    def test_one_other_replica_is_enough_to_stop(self, standing: Standing) -> None:
        stop = ready_to_dispatch(self.at({"b": look("b", standing)}), EXPECTED, FIRST)
        assert stop is not None
        assert stop.standings["b"] is standing

    def test_a_candidate_under_another_name_is_not_dispatched(self) -> None:
        assert ready_to_dispatch(self.at({"b": look("b", Standing.PREDECESSOR, FRESH)}), EXPECTED, FIRST) is not None

    def test_a_replica_that_was_not_looked_at_stops(self) -> None:
        assert ready_to_dispatch(self.at()[:2], EXPECTED, FIRST) is not None


class TestRebuilding:
    """A table that is being made again may lack rows: under its own name nothing takes it for the generation."""

    MAKING = rebuilding_name_of(FRESH, "t", GENERATION)

    def _settled(self, tables: Mapping[str, TableIdentity]) -> Settlement:
        looks = (ReplicaLook("a", tables=tables), look("b", Standing.DESIRED, KEPT), look("c", Standing.DESIRED, KEPT))
        return settle(looks, EXPECTED, FRESH, looked_after_seal=True)

    def test_the_name_carries_the_generation_and_the_attempt(self) -> None:
        assert generation_of(self.MAKING) == GENERATION.replace("-", "")
        assert FRESH.replace("_c2_7", "_r2_7") == self.MAKING

    def test_an_unfinished_table_counts_as_lost_and_is_named(self) -> None:
        assert self._settled({self.MAKING: new("a")}) == Rebuild(("a",), {"a": self.MAKING})

    def test_a_finished_one_is_dispatched_whatever_else_is_there(self) -> None:
        settled = self._settled({self.MAKING: new("a"), FIRST: new("a"), FRESH: new("a")})
        assert settled == Redispatch({"a": SwapForm.FIRST})

    def test_a_second_table_beside_the_live_one_is_put_aside(self) -> None:
        settled = self._settled({"t": new("a"), FIRST: new("a")})
        assert settled == Seal((Rename("a", FIRST, self.MAKING),))

    def test_what_was_put_aside_does_not_hinder_the_proof(self) -> None:
        assert isinstance(self._settled({"t": new("a"), self.MAKING: new("a")}), Proven)
