"""Interleavings of publications worth a name: statements that run late or twice, lost candidates, strangers."""

from __future__ import annotations

from itertools import count

import pytest

from dpone.domain import events as e
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.operation import State

from .commands import KEYS
from .processes import Clock
from .promises import check_world
from .scenes import Scene, code


class TestPublication:
    @pytest.mark.parametrize("fault", ["lost", "late", "twice", "done"])
    @pytest.mark.parametrize("replicas", [1, 3])
    def test_whatever_became_of_the_statement_one_process_reaches_the_proof(self, fault: str, replicas: int) -> None:
        scene = Scene(replicas=replicas)
        scene.world.faults["swap"] = fault
        run = scene.start()
        run.finish()
        assert code(run) is None
        assert scene.live_is()

    @pytest.mark.parametrize("call", ["look", "rename", "append PublicationFenced", "append CommitProven"])
    @pytest.mark.parametrize("fault", ["late", "twice"])
    def test_a_statement_that_runs_late_never_takes_the_proof_back(self, call: str, fault: str) -> None:
        scene = Scene()
        scene.world.faults["swap"] = fault
        run = scene.start()
        assert run.advance_to("swap")
        if not run.advance_to(call):
            return
        for statement in list(scene.world.pending):
            scene.world.run(statement)
        check_world(scene.world)
        run.finish()
        assert code(run) is None
        for statement in list(scene.world.pending):
            scene.world.run(statement)
        assert scene.live_is()

    def test_a_statement_that_runs_twice_before_the_seal_is_seen_by_the_second_look(self) -> None:
        scene = Scene()
        scene.world.faults["swap"] = "twice"
        run = scene.start()
        assert run.advance_to("rename")
        (again,) = scene.world.pending
        assert scene.world.run(again)
        run.finish()
        assert code(run) is None
        assert scene.live_is()
        assert scene.count(e.PublicationFenced) == 1

    def test_a_frozen_fence_of_an_earlier_attempt_moves_nothing_of_a_later_one(self) -> None:
        scene = Scene()
        scene.world.faults["swap"] = "lost"
        earlier = scene.start()
        assert earlier.advance_to("swap")
        assert earlier.advance_to("rename")
        later = scene.start()
        assert later.advance_to("append PublicationFenced")
        earlier.finish()
        assert code(earlier) is ErrorCode.SUPERSEDED
        later.finish()
        assert code(later) is None
        assert scene.live_is()

    def test_a_frozen_dispatch_of_an_earlier_attempt_sends_what_cannot_succeed_any_more(self) -> None:
        scene = Scene()
        earlier = scene.start()
        assert earlier.advance_to("swap")
        later = scene.start()
        later.finish()
        before = {replica: scene.world.live(replica) for replica in scene.world.replicas}
        earlier.finish()
        assert {replica: scene.world.live(replica) for replica in scene.world.replicas} == before

    def test_no_two_attempts_name_one_destination(self) -> None:
        scene = Scene()
        scene.world.faults["swap"] = "lost"
        earlier = scene.start()
        assert earlier.advance_to("swap")
        assert earlier.advance_to("rename")
        later = scene.start()
        assert later.advance_to("rename")
        assert earlier.stepped.at.split(" to ")[1] != later.stepped.at.split(" to ")[1]

    def test_a_lost_candidate_is_staged_anew_and_the_capsule_is_void(self) -> None:
        scene = Scene()
        first = scene.start()
        assert first.advance_to("append PublicationDispatched")
        first.crash()
        candidate = scene.world.ledger.operation(KEYS["monday"]).generation
        assert candidate is not None
        del scene.world.tables["r1"][candidate.candidate]
        second = scene.start()
        second.finish()
        assert code(second) is None
        assert (second.opens, scene.count(e.CapsuleWritten)) == (1, 2)

    def test_a_publication_that_makes_no_step_is_given_up_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moments = count(step=7)  # seconds: every rename waits for a Keeper that stands still
        monkeypatch.setattr(Clock, "monotonic", lambda self: float(next(moments)))
        scene = Scene()
        scene.world.faults["swap"] = "lost"
        run = scene.start()
        refused = 0
        while run.advance_to("rename"):
            scene.world.faults["rename"] = "lost"
            run.advance()
            refused += 1
        assert code(run) is ErrorCode.EVIDENCE_INCOMPLETE
        assert isinstance(run.stepped.error, DponeError)
        assert run.stepped.error.cause is ErrorCode.REPLICA_UNREACHABLE
        assert 3 <= refused <= 6
        scene.world.faults.clear()
        again = scene.start()
        again.finish()
        assert (code(again), again.opens) == (None, 0)
        assert scene.live_is()

    def test_an_unreachable_replica_leaves_everything_in_place(self) -> None:
        scene = Scene(replicas=2)
        run = scene.start()
        assert run.advance_to("swap")
        scene.world.unreachable.add("r2")
        run.finish()
        assert code(run) is ErrorCode.EVIDENCE_INCOMPLETE
        assert scene.state() is State.DISPATCHED
        scene.world.unreachable.clear()
        again = scene.start()
        again.finish()
        assert code(again) is None
        assert again.opens == 0
        assert scene.live_is()


class TestForeignTables:
    @pytest.mark.parametrize("call", ["look", "append PublicationDispatched", "append CommitProven"])
    def test_a_table_of_somebody_elses_stays_where_it_is(self, call: str) -> None:
        scene = Scene()
        run = scene.start()
        assert run.advance_to("append CapsuleWritten")
        assert run.advance_to(call)
        run.crash()
        scene.world.meddle("r1")
        foreign = scene.world.live("r1")
        again = scene.start()
        again.finish()
        assert code(again) in (ErrorCode.FOREIGN_TARGET, ErrorCode.EVIDENCE_MISMATCH)
        assert scene.world.live("r1") is foreign

    def test_a_completed_run_whose_table_was_replaced_is_no_replay(self) -> None:
        scene = Scene()
        scene.start().finish()
        scene.world.meddle("r1")
        again = scene.start()
        again.finish()
        assert code(again) is ErrorCode.EVIDENCE_MISMATCH
        assert scene.count(e.ReplayValidated) == 0
