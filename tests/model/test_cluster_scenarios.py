"""Interleavings of clusters worth a name: each a story of given, when, then over replicas that do not keep step."""

from __future__ import annotations

import pytest

from dpone.domain import events as e
from dpone.domain.errors import ErrorCode
from dpone.domain.operation import State

from . import owner
from .processes import Process
from .promises import check_world
from .scenes import Scene, code


def scene_of(replicas: int = 3, *, exchanges: bool = True, published: bool = True, keep: int = 1) -> Scene:
    scene = Scene(replicas=replicas, published=published, keep=keep)
    scene.world.exchanges = exchanges
    return scene


def again_completes(scene: Scene, *, swaps: int | None = None) -> Process:
    """The same command alone comes to the proof without reading; what is late comes too late, before and after."""
    again = scene.start()
    again.finish()
    assert code(again) is None
    assert (again.opens, scene.state()) == (0, State.COMPLETE)
    assert swaps is None or scene.count(e.PublicationDispatched) == swaps
    late_entries_change_nothing(scene)
    replay = scene.start()
    replay.finish()
    assert (code(replay), replay.opens) == (None, 0)
    return again


def late_entries_change_nothing(scene: Scene) -> None:
    for statement in scene.world.pending:
        scene.world.run(statement)
    check_world(scene.world)
    assert scene.live_is()


def interrupted(scene: Scene, fates: dict[str, str], at: str = "look") -> Process:
    """A run whose one statement met these fates and that died before it looked."""
    run = scene.start()
    assert run.advance_to("swap")
    scene.world.fates.update(fates)
    assert run.advance_to(at)
    run.crash()
    return run


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("published", [True, False])
class TestLaggingReplicas:
    def test_the_lagging_one_is_fenced_and_sent_to_directly(self, exchanges: bool, published: bool) -> None:
        scene = scene_of(exchanges=exchanges, published=published)
        interrupted(scene, {"r2": "late"})
        again_completes(scene, swaps=2)
        dispatched = [o for o in scene.world.ledger.operations.values() if o.publication is not None]
        assert {o.publication.candidate[-4:] for o in dispatched if o.publication is not None} >= {"c2_2"}

    def test_an_entry_that_runs_after_the_fence_fails(self, exchanges: bool, published: bool) -> None:
        scene = scene_of(exchanges=exchanges, published=published)
        interrupted(scene, {"r2": "late"})
        again = scene.start()
        assert again.advance_to("append PublicationFenced")
        (entry,) = scene.world.pending
        assert not scene.world.run(entry)
        again.finish()
        assert code(again) is None
        late_entries_change_nothing(scene)

    @pytest.mark.parametrize("fate", ["cut 1", "cut 2", "midway 1", "midway 2", "lost", "twice", "late"])
    def test_whatever_one_replica_did_of_its_statement(self, exchanges: bool, published: bool, fate: str) -> None:
        scene = scene_of(exchanges=exchanges, published=published)
        interrupted(scene, {"r2": fate})
        again_completes(scene)

    def test_a_replica_that_is_frozen_through_everything(self, exchanges: bool, published: bool) -> None:
        scene = scene_of(exchanges=exchanges, published=published)
        interrupted(scene, {})
        scene.world.unreachable.add("r3")
        for _ in range(2):
            retry = scene.start()
            retry.finish()
            assert code(retry) is ErrorCode.EVIDENCE_INCOMPLETE
        scene.world.unreachable.clear()
        again_completes(scene, swaps=1)

    def test_two_attempts_that_settle_in_turns(self, exchanges: bool, published: bool) -> None:
        scene = scene_of(exchanges=exchanges, published=published)
        interrupted(scene, {"r1": "late", "r3": "late"})
        one, two = scene.start(), scene.start()
        while not (one.stepped.ended and two.stepped.ended):
            one.advance()
            two.advance()
            check_world(scene.world)
        assert ErrorCode.SUPERSEDED in {code(one), code(two)} or {code(one), code(two)} == {None}
        again_completes(scene)


class TestRepeatedEntries:
    def test_an_exchange_that_ran_twice_is_swapped_once_more_and_sealed(self) -> None:
        scene = scene_of()
        interrupted(scene, {"r2": "twice"})
        (entry,) = scene.world.pending
        assert scene.world.run(entry)
        again_completes(scene, swaps=2)

    def test_an_exchange_that_runs_again_between_look_and_seal(self) -> None:
        scene = scene_of()
        interrupted(scene, {"r1": "twice"})
        again = scene.start()
        assert again.advance_to("rename")
        (entry,) = scene.world.pending
        assert scene.world.run(entry)
        again.finish()
        assert code(again) is None
        late_entries_change_nothing(scene)


@pytest.mark.parametrize("exchanges", [True, False])
class TestLostTables:
    def test_the_lost_generation_is_made_again(self, exchanges: bool) -> None:
        scene = scene_of(exchanges=exchanges)
        interrupted(scene, {})
        scene.world.wipe("r2")
        again_completes(scene)

    def test_while_another_replica_lags(self, exchanges: bool) -> None:
        scene = scene_of(exchanges=exchanges)
        interrupted(scene, {"r1": "late", "r2": "late"})
        scene.world.wipe("r2")
        again_completes(scene)

    @pytest.mark.parametrize("call", ["synchronise", "rename"])
    def test_a_rebuild_that_was_cut_is_finished_and_not_published_without_its_rows(
        self, exchanges: bool, call: str
    ) -> None:
        scene = scene_of(exchanges=exchanges)
        interrupted(scene, {})
        scene.world.wipe("r2")
        cut = scene.start()
        assert cut.advance_to("rebuild")
        assert cut.advance_to(call)
        cut.crash()
        again_completes(scene)
        table = scene.world.live("r2")
        assert table is not None
        assert table.filled

    def test_a_stale_rebuild_beside_the_live_table_stops_nobody(self, exchanges: bool) -> None:
        scene = scene_of(exchanges=exchanges)
        interrupted(scene, {})
        scene.world.wipe("r2")
        stale = scene.start()
        assert stale.advance_to("rebuild")
        newer = scene.start()
        assert newer.advance_to("append CommitProven")
        stale.finish()
        assert code(stale) is ErrorCode.SUPERSEDED
        newer.finish()
        assert code(newer) is None
        late_entries_change_nothing(scene)

    def test_lost_everywhere_is_said_and_nothing_is_touched(self, exchanges: bool) -> None:
        scene = scene_of(exchanges=exchanges)
        interrupted(scene, {})
        for replica in scene.world.replicas:
            scene.world.wipe(replica)
        again = scene.start()
        again.finish()
        assert code(again) is ErrorCode.EVIDENCE_INCOMPLETE
        assert "under no name" in str(again.stepped.error)
        assert scene.state() is State.DISPATCHED


class TestTheInventory:
    def test_a_replica_that_is_excluded_while_dispatched_is_left_out_of_the_proof(self) -> None:
        scene = scene_of()
        interrupted(scene, {"r2": "late"})
        scene.world.unreachable.add("r2")
        assert owner.exclude(scene.world, "r2")
        again = scene.start()
        again.finish()
        assert code(again) is None
        assert scene.count(e.InventoryReduced) == 1
        scene.world.unreachable.clear()
        assert owner.admit(scene.world, "r2")
        for statement in scene.world.pending:
            scene.world.run(statement)
        check_world(scene.world)

    def test_the_slot_is_appended_to_where_it_was_looked_at_and_not_where_it_stands_by_now(self) -> None:
        """The replica is excluded while the last look is taken: a proof appended at the head would speak of it."""
        scene = scene_of()
        run = scene.start()
        assert run.advance_to("swap")
        assert run.advance_to("look r3")
        assert run.advance_to("look r3")
        assert owner.exclude(scene.world, "r3")
        run.finish()
        assert code(run) is None
        live = scene.world.ledger.slot.live
        assert live is not None
        assert set(live.identities) == {"r1", "r2"}

    def test_a_process_that_was_wired_before_a_replica_came_back_does_not_publish_past_it(self) -> None:
        scene = scene_of()
        assert owner.exclude(scene.world, "r3")
        waiting = scene.start()
        assert owner.admit(scene.world, "r3")
        waiting.finish()
        assert code(waiting) is ErrorCode.EVIDENCE_INCOMPLETE
        assert waiting.opens == 0
        scene.start().finish()
        assert scene.live_is()


class TestDropping:
    def test_a_strangers_table_under_the_name_of_one_to_be_dropped_stays(self) -> None:
        """By identity and not by name: somebody put theirs there after the intent was recorded."""
        scene = scene_of(1, keep=0)
        run = scene.start()
        assert run.advance_to("drop")
        (name,) = scene.world.ledger.slot.retirements
        scene.world.meddle("r1", name)
        run.finish()
        assert code(run) is None
        assert scene.world.tables["r1"][name].foreign

    def test_it_stays_when_it_was_there_before_the_drop_was_decided(self) -> None:
        scene = scene_of(1, keep=0)
        scene.world.faults["drop"] = "refused"
        scene.start().finish()
        (name,) = scene.world.ledger.slot.retirements
        scene.world.meddle("r1", name)
        later = scene.start("tuesday")
        later.finish()
        assert code(later) is None
        assert scene.world.tables["r1"][name].foreign
