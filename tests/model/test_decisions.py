"""Ending an operation and stopping claims, against processes that freeze, die or race, and statements that run late."""

from __future__ import annotations

import pytest

from dpone.domain.errors import ErrorCode
from dpone.domain.operation import State

from .deciding import Retirement, hold, release_guard, unhold
from .processes import Process
from .promises import check_world
from .scenes import MIDDLE, Scene, code
from .statements import FATES
from .world import TARGET, World


def retired(scene: Scene) -> Process:
    """``ops retire`` of Monday's run, from its beginning to its end."""
    one = Retirement(scene.world, "monday")
    one.finish()
    return one


def run_pending(world: World) -> None:
    """Every statement that is under way runs now."""
    for replica in world.replicas:
        world.resume(replica)
    while world.pending:
        world.run(world.pending.pop(0))
        check_world(world)


def check_next_night(scene: Scene) -> None:
    """The target is free, and Tuesday's run loads it, whatever is left."""
    assert scene.world.ledger.slot.holder is None
    tuesday = scene.start("tuesday")
    tuesday.finish()
    assert code(tuesday) is None, tuesday.stepped.error
    assert scene.live_is("tuesday")
    check_world(scene.world)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("call", MIDDLE)
def test_what_died_is_ended_and_the_next_night_loads(call: str, replicas: int) -> None:
    scene = Scene(replicas=replicas)
    run = scene.start()
    assert run.advance_to(call)
    run.crash()
    assert code(retired(scene)) is None
    assert scene.state() is State.RETIRED
    check_world(scene.world)
    check_next_night(scene)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("call", MIDDLE)
def test_a_frozen_process_does_no_harm_after_it_was_ended(call: str, replicas: int) -> None:
    scene = Scene(replicas=replicas)
    frozen = scene.start()
    assert frozen.advance_to(call)
    assert code(retired(scene)) is None
    frozen.finish()
    assert code(frozen) in (ErrorCode.RETIRED, ErrorCode.SUPERSEDED, ErrorCode.EVIDENCE_INCOMPLETE)
    run_pending(scene.world)
    check_world(scene.world)
    check_next_night(scene)


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("first", FATES)
@pytest.mark.parametrize("second", FATES)
def test_whatever_became_of_the_statement(first: str, second: str, published: bool, exchanges: bool) -> None:
    """Two replicas, each with a fate of its own; what is late runs after the end."""
    scene = Scene(replicas=2, published=False)
    scene.world.exchanges = exchanges
    if published:
        scene.start("wednesday").finish()
    run = scene.start()
    assert run.advance_to("swap")
    scene.world.fates.update({"r1": first, "r2": second})
    run.advance()
    run.crash()
    ended = retired(scene)
    assert code(ended) is None, ended.stepped.error
    run_pending(scene.world)
    check_next_night(scene)


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize(
    "fates", [("", "late"), ("late", "late"), ("cut 2", "lost"), ("twice", ""), ("midway 2", "late")]
)
def test_killed_before_any_call_it_is_repeated(fates: tuple[str, str], exchanges: bool) -> None:
    number = 0
    while True:
        scene = Scene(replicas=2, published=False)
        scene.world.exchanges = exchanges
        scene.start("wednesday").finish()
        run = scene.start()
        assert run.advance_to("swap")
        scene.world.fates.update(dict(zip(("r1", "r2"), fates, strict=True)))
        run.advance()
        run.crash()
        first = Retirement(scene.world, "monday")
        first.advance(number)
        if first.stepped.ended:
            break
        first.crash()
        run_pending(scene.world)
        assert code(retired(scene)) is None
        check_next_night(scene)
        number += 1
    assert number > 5


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_two_at_once(steps: int) -> None:
    """One stops after so many calls; the other ends it; the first finds out."""
    scene = Scene(replicas=2)
    run = scene.start()
    assert run.advance_to("append CommitProven")
    run.crash()
    one = Retirement(scene.world, "monday")
    one.advance(steps)
    assert code(retired(scene)) is None
    one.finish()
    assert code(one) in (None, ErrorCode.SUPERSEDED, ErrorCode.LEDGER_CONFLICT)
    check_next_night(scene)


@pytest.mark.parametrize("steps", range(0, 40, 3))
@pytest.mark.parametrize("call", ["fill", "swap", "append CommitProven", "reader orders"])
def test_a_run_that_comes_in_between_wins(call: str, steps: int) -> None:
    scene = Scene(replicas=2)
    first = scene.start()
    assert first.advance_to(call)
    first.crash()
    ending = Retirement(scene.world, "monday")
    ending.advance(steps)
    run = scene.start()
    run.finish()
    ending.finish()
    assert scene.state() in (State.COMPLETE, State.RETIRED)
    assert (code(run) is None) == (scene.state() is State.COMPLETE)
    check_world(scene.world)
    check_next_night(scene)


@pytest.mark.parametrize("call", MIDDLE)
def test_a_hold_never_stops_the_owner(call: str) -> None:
    scene = Scene()
    run = scene.start()
    assert run.advance_to(call)
    hold(scene.world)
    run.finish()
    assert code(run) is None
    later = scene.start("tuesday")
    later.finish()
    assert code(later) is ErrorCode.TARGET_BLOCKED
    unhold(scene.world)
    check_next_night(scene)


@pytest.mark.parametrize("call", MIDDLE)
def test_a_held_target_is_not_taken_from_what_died(call: str) -> None:
    """No later run displaces while claims are stopped; the same command still goes on."""
    scene = Scene()
    run = scene.start()
    assert run.advance_to(call)
    run.crash()
    hold(scene.world)
    tuesday = scene.start("tuesday")
    tuesday.finish()
    assert code(tuesday) is ErrorCode.TARGET_BLOCKED
    again = scene.start()
    again.finish()
    assert code(again) is None


@pytest.mark.parametrize("fault", ["lost", "unheard"])
def test_a_rename_that_fails_ends_nothing_that_is_still_open(fault: str) -> None:
    scene = Scene(replicas=2)
    run = scene.start()
    assert run.advance_to("swap")
    run.crash()
    scene.world.faults["rename"] = fault
    first = retired(scene)
    assert code(first) is (ErrorCode.EVIDENCE_INCOMPLETE if fault == "lost" else None)
    assert (scene.world.ledger.slot.holder is None) == (code(first) is None)
    assert code(retired(scene)) is None
    check_next_night(scene)


@pytest.mark.parametrize("call", ["append CapsuleWritten", "swap", "append CommitProven", "reader orders"])
def test_whatever_is_left_is_listed(call: str) -> None:
    scene = Scene(replicas=2)
    run = scene.start()
    assert run.advance_to(call)
    run.crash()
    assert code(retired(scene)) is None
    slot = scene.world.ledger.slot
    known = {TARGET.table, *slot.retirements, *(name for kept in slot.kept for name in kept.names.values())}
    for replica in scene.world.replicas:
        assert set(scene.world.tables[replica]) <= known


@pytest.mark.parametrize("call", ["reader orders", "append TargetObserved"])
def test_a_guard_that_was_released_under_a_reader_is_taken_anew(call: str) -> None:
    """The frozen process finds that its guard is gone and observes under another; a second process may do it first."""
    for second in (False, True):
        scene = Scene()
        frozen = scene.start()
        assert frozen.advance_to(call)
        assert release_guard(scene.world, "monday")["guard_held"] is False
        check_world(scene.world)
        assert scene.state() is State.TARGET_PENDING
        if second:
            other = scene.start()
            other.finish()
            assert code(other) is None
        frozen.finish()
        assert code(frozen) is (ErrorCode.SUPERSEDED if second else None)
        assert scene.state() is State.COMPLETE
        check_next_night(scene)
