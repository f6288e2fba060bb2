"""Interleavings worth a name: one test each for what a promise means, and for what the model once found.

A process is advanced to the call before which it shall freeze; others run meanwhile; then it goes on.
"""

from __future__ import annotations

import pytest

from dpone.domain import events as e
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.operation import State

from .commands import KEYS, command
from .processes import Process
from .promises import check_world
from .world import World

MIDDLE = (
    "append StagingOpened",
    "create",
    "open source",
    "fill",
    "append SourceObserved",
    "append StagedObserved",
    "append GatesEvaluated",
    "append CapsuleWritten",
    "append PublicationDispatched",
    "swap",
    "append CommitProven",
    "append TargetPending",
    "reader orders",
    "append TargetObserved",
    "append ReceiptAccepted",
    "append ReaderGuardReleased",
    "append OperationCompleted",
)


class Scene:
    """A world with a published generation, and commands to start in it."""

    def __init__(self, *, replicas: int = 1, keep: int = 1, published: bool = True) -> None:
        self.world = World(tuple(f"r{number}" for number in range(1, replicas + 1)))
        self.keep = keep
        if published:
            self.start("wednesday").finish()

    def start(self, key: str = "monday", flavour: str = "observed", *, changed: bool = False) -> Process:
        return Process(self.world, key, command(key, flavour, changed=changed), self.keep)

    def state(self, key: str = "monday") -> State:
        return self.world.ledger.operation(KEYS[key]).state

    def count(self, kind: type[e.Event], key: str = "monday") -> int:
        return sum(isinstance(event, kind) for event in self.world.ledger.events(KEYS[key]))

    def live_is(self, key: str = "monday") -> bool:
        generation = self.world.ledger.operation(KEYS[key]).generation
        assert generation is not None
        identities = generation.identities or {}
        tables = {replica: self.world.live(replica) for replica in self.world.replicas}
        return all(table is not None and table.identity == identities[r] for r, table in tables.items())


def code(process: Process) -> ErrorCode | None:
    """How a process ended: None for success."""
    assert process.stepped.ended
    if process.stepped.error is None:
        return None
    assert isinstance(process.stepped.error, DponeError)
    return process.stepped.error.code


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
