"""Interleavings worth a name: one test each for what a promise means, and for what the model once found.

A process is advanced to the call before which it shall freeze; others run meanwhile; then it goes on.
"""

from __future__ import annotations

import pytest

from dpone.domain import events as e
from dpone.domain.errors import ErrorCode
from dpone.domain.operation import State

from .promises import check_world
from .scenes import MIDDLE, Scene, code


@pytest.mark.parametrize("flavour", ["observed", "version 1", "warn only", "not durable"])
@pytest.mark.parametrize("published", [False, True])
def test_a_run_ends_complete_with_one_read_and_one_swap(flavour: str, published: bool) -> None:
    scene = Scene(published=published)
    run = scene.start(flavour=flavour)
    run.finish()
    assert code(run) is None
    assert (run.opens, scene.count(e.PublicationDispatched), scene.state()) == (1, 1, State.COMPLETE)
    assert scene.live_is()


@pytest.mark.parametrize("flavour", ["observed", "version 1"])
def test_a_repeated_command_is_a_replay_that_touches_nothing(flavour: str) -> None:
    scene = Scene()
    scene.start(flavour=flavour).finish()
    again = scene.start(flavour=flavour)
    again.finish()
    assert code(again) is None
    assert (again.opens, scene.count(e.PublicationDispatched), scene.count(e.ReplayValidated)) == (0, 1, 1)


@pytest.mark.parametrize("call", MIDDLE)
def test_killed_anywhere_the_same_command_finishes(call: str) -> None:
    scene = Scene()
    first = scene.start()
    assert first.advance_to(call)
    sealed = scene.count(e.CapsuleWritten)
    first.crash()
    second = scene.start()
    second.finish()
    assert code(second) is None
    assert scene.live_is()
    assert second.opens == 0 or not sealed
    assert first.opens + second.opens <= 2


@pytest.mark.parametrize("call", MIDDLE)
def test_a_frozen_process_is_superseded_and_does_no_harm(call: str) -> None:
    scene = Scene()
    frozen = scene.start()
    assert frozen.advance_to(call)
    newer = scene.start()
    newer.finish()
    assert code(newer) is None
    frozen.finish()
    assert code(frozen) is ErrorCode.SUPERSEDED
    check_world(scene.world)
    assert scene.live_is()
    assert scene.count(e.OperationCompleted) == 1


@pytest.mark.parametrize("call", MIDDLE)
def test_of_two_processes_in_turns_one_publishes_and_the_other_gives_way_or_replays(call: str) -> None:
    scene = Scene()
    one = scene.start()
    assert one.advance_to(call)
    two = scene.start()
    while not (one.stepped.ended and two.stepped.ended):
        two.advance()
        check_world(scene.world)
        one.advance()
        check_world(scene.world)
    endings = {code(one), code(two)}
    assert endings == {None, ErrorCode.SUPERSEDED} or (endings == {None} and scene.count(e.ReplayValidated) == 1)
    assert scene.count(e.CommitProven) == 1


class TestSuccessors:
    def test_a_later_run_displaces_one_that_died_while_staging(self) -> None:
        scene = Scene()
        first = scene.start()
        assert first.advance_to("append SourceObserved")
        first.crash()
        next_night = scene.start("tuesday")
        next_night.finish()
        assert code(next_night) is None
        assert scene.state() is State.RETIRED
        again = scene.start()
        again.finish()
        assert code(again) is ErrorCode.RETIRED

    def test_a_displaced_process_finds_its_stream_ended(self) -> None:
        scene = Scene()
        frozen = scene.start()
        assert frozen.advance_to("append PublicationDispatched")
        scene.start("tuesday").finish()
        frozen.finish()
        assert code(frozen) is ErrorCode.RETIRED
        assert scene.live_is("tuesday")

    @pytest.mark.parametrize("call", ["swap", "append CommitProven", "reader orders", "append OperationCompleted"])
    def test_after_dispatch_a_later_run_is_blocked(self, call: str) -> None:
        scene = Scene()
        first = scene.start()
        assert first.advance_to(call)
        next_night = scene.start("tuesday")
        next_night.finish()
        assert code(next_night) is ErrorCode.TARGET_BLOCKED
        assert next_night.opens == 0

    def test_another_dag_is_blocked_even_before_dispatch(self) -> None:
        scene = Scene()
        assert scene.start().advance_to("open source")
        other = scene.start("foreign dag")
        other.finish()
        assert code(other) is ErrorCode.TARGET_BLOCKED

    def test_a_replay_after_a_successor_published_is_a_mismatch(self) -> None:
        scene = Scene()
        scene.start().finish()
        scene.start("tuesday").finish()
        again = scene.start()
        again.finish()
        assert code(again) is ErrorCode.EVIDENCE_MISMATCH

    def test_a_successor_between_look_and_append_of_a_replay_is_noticed(self) -> None:
        scene = Scene()
        scene.start().finish()
        again = scene.start()
        assert again.advance_to("append AttemptStarted+ReplayValidated")
        successor = scene.start("tuesday")
        assert successor.advance_to("open source")
        again.finish()
        assert code(again) is ErrorCode.TARGET_BLOCKED
        assert scene.count(e.ReplayValidated) == 0

    def test_a_changed_configuration_is_refused_and_taken_after_a_failure(self) -> None:
        scene = Scene()
        scene.world.rows = 0
        scene.start().finish()
        assert scene.state() is State.FAILED
        scene.world.rows = 2
        corrected = scene.start(changed=True)
        corrected.finish()
        assert code(corrected) is None
        original = scene.start()
        original.finish()
        assert code(original) is ErrorCode.IDENTITY_CONFLICT


class TestFailures:
    def test_a_failed_gate_leaves_the_live_table_and_frees_the_target(self) -> None:
        scene = Scene()
        scene.world.rows = 0
        run = scene.start()
        run.finish()
        assert code(run) is ErrorCode.EVIDENCE_FAILED
        assert scene.live_is("wednesday")
        assert scene.world.ledger.slot.holder is None
        scene.world.rows = 2
        other = scene.start("foreign dag")
        other.finish()
        assert code(other) is None

    def test_a_source_that_cannot_be_read_any_more_frees_the_target_of_a_resumed_run(self) -> None:
        scene = Scene()
        scene.world.faults["source"] = "changed"
        run = scene.start()
        run.finish()
        assert code(run) is ErrorCode.SOURCE_CHANGED
        assert scene.world.ledger.slot.holder is None

    def test_a_reader_that_failed_and_was_reaped_releases_its_guard(self) -> None:
        scene = Scene()
        run = scene.start()
        assert run.advance_to("reader orders")
        scene.world.faults["reader"] = "reaped"
        run.finish()
        assert code(run) is ErrorCode.EVIDENCE_INCOMPLETE
        assert (scene.world.ledger.slot.guard, scene.state()) == (None, State.TARGET_PENDING)
        again = scene.start()
        again.finish()
        assert code(again) is None

    def test_a_reader_that_was_not_reaped_keeps_its_guard_until_the_next_attempt_takes_it_over(self) -> None:
        scene = Scene()
        run = scene.start()
        assert run.advance_to("reader orders")
        scene.world.faults["reader"] = "unreaped"
        run.finish()
        assert code(run) is ErrorCode.EVIDENCE_INCOMPLETE
        assert scene.world.ledger.slot.guard is not None
        again = scene.start()
        again.finish()
        assert code(again) is None
        assert scene.world.ledger.slot.guard is None

    def test_warn_only_completes_without_the_observation(self) -> None:
        scene = Scene()
        run = scene.start(flavour="warn only")
        assert run.advance_to("reader orders")
        scene.world.faults["reader"] = "reaped"
        run.finish()
        assert code(run) is None
        assert scene.count(e.TargetObservationWaived) == 1

    def test_a_candidate_that_cannot_be_observed_fails_before_anything_is_published(self) -> None:
        scene = Scene()
        scene.world.faults["reader"] = "does not fit"
        run = scene.start()
        run.finish()
        assert code(run) is ErrorCode.EVIDENCE_UNSUPPORTED
        assert scene.state() is State.FAILED
        assert scene.count(e.PublicationDispatched) == 0

    @pytest.mark.parametrize("fault", ["refused", "done"])
    def test_a_drop_that_failed_is_no_failure_of_the_run(self, fault: str) -> None:
        scene = Scene(keep=0)
        scene.world.faults["drop"] = fault
        run = scene.start()
        run.finish()
        assert code(run) is None
        assert scene.state() is State.COMPLETE


class TestTheLedger:
    @pytest.mark.parametrize("fault", ["lost", "stored"])
    @pytest.mark.parametrize("call", [call for call in MIDDLE if call.startswith("append")])
    def test_an_append_of_unknown_outcome_is_never_a_success(self, call: str, fault: str) -> None:
        scene = Scene()
        run = scene.start()
        assert run.advance_to(call)
        scene.world.faults["append"] = fault
        run.finish()
        assert code(run) is ErrorCode.EVIDENCE_INCOMPLETE
        again = scene.start()
        again.finish()
        assert code(again) is None
        assert scene.live_is()


class TestWhatTheModelFound:
    """Shrunk counterexamples, each kept for ever."""

    def test_an_operation_is_not_blocked_by_itself(self) -> None:
        """Its stream was read before another process of the same command claimed, the slot's after that."""
        scene = Scene()
        torn = scene.start()
        assert torn.advance_to("read slot")
        assert scene.start().advance_to("append StagingOpened")
        torn.finish()
        assert code(torn) is None
        assert scene.state() is State.COMPLETE

    @pytest.mark.parametrize("flavour", ["observed", "version 1"])
    def test_a_candidate_that_is_lost_before_it_is_observed_is_read_anew(self, flavour: str) -> None:
        """It was filled and recorded; then its replica lost it. Every attempt failed to observe it, for ever."""
        scene = Scene(published=False)
        first = scene.start(flavour=flavour)
        assert first.advance_to("append StagedObserved")
        first.crash()
        scene.world.wipe("r1")
        again = scene.start(flavour=flavour)
        again.finish()
        assert code(again) is None
        assert (again.opens, scene.count(e.StagingAbandoned), scene.state()) == (1, 1, State.COMPLETE)

    def test_a_table_that_the_holder_published_meanwhile_is_no_strangers(self) -> None:
        """The later run meant to displace it and looked; the holder had dispatched since, in a stream of its own."""
        scene = Scene(published=False)
        holder = scene.start()
        assert holder.advance_to("append PublicationDispatched")
        later = scene.start("tuesday")
        assert later.advance_to("look")
        assert holder.advance_to("look")
        later.finish()
        assert code(later) is ErrorCode.TARGET_BLOCKED
