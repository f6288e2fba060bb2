"""Every append of the real loop follows from what it found; one that nothing asks for is told as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.domain import events as e
from dpone.domain import steps as s
from dpone.domain.identity import operation_id, slot_id
from dpone.domain.operation import State
from dpone.domain.ports import Recorded, StreamAppend
from dpone.domain.retracing import Followed, Moment, retrace
from tests.ledger.projections.histories import Move, model_history
from tests.model.commands import FLAVOURS, KEYS
from tests.model.world import SLOT

from . import examples as x

STREAM = operation_id(x.KEY)
ITS_SLOT = slot_id(x.KEY.target)


def moments(appended: Sequence[Sequence[StreamAppend]]) -> list[Moment]:
    """The appends' events in ledger order."""
    versions: Counter[UUID] = Counter()
    found: list[Moment] = []
    for number, appends in enumerate(appended):
        for part in appends:
            for event in part.events:
                versions[part.stream] += 1
                recorded = Recorded(part.stream, versions[part.stream], event)
                found.append(Moment(len(found) + 1, f"append {number}", recorded))
    return found


def told(*parts: tuple[e.Event, ...], slot: tuple[e.Event, ...] = ()) -> tuple[Followed, ...]:
    """The history of the examples' operation, an append a part; ``slot`` goes with the first."""
    first = [StreamAppend(STREAM, 0, parts[0]), StreamAppend(ITS_SLOT, 0, (x.slot_opened(), x.claimed(), *slot))]
    rest = [[StreamAppend(STREAM, 0, part)] for part in parts[1:]]
    return retrace(moments([first, *rest]), STREAM, ITS_SLOT)[0]


@given(
    moves=st.lists(
        st.builds(Move, st.sampled_from(sorted(KEYS)), st.sampled_from(FLAVOURS), st.integers(0, 30), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_whatever_the_loop_appends_follows(moves: list[Move]) -> None:
    history = moments(model_history(moves))
    for key in KEYS.values():
        stream = operation_id(key)
        if not any(moment.recorded.stream == stream for moment in history):
            continue
        followed, standing = retrace(history, stream, SLOT)
        assert [one.because for one in followed if not one.follows] == []
        own = [moment for one in followed for moment in one.moments if moment.recorded.stream == stream]
        assert [moment.recorded.version for moment in own] == list(range(1, standing.operation.version + 1))


def test_the_steps_of_a_life_are_named() -> None:
    steps = [
        one.step for one in told(x.UNTIL[State.ADMITTED], (x.opened(),), (x.source_observed(), x.candidate_staged()))
    ]
    assert steps == ["Claim", "Stage", "Stage"]


def test_what_nothing_asks_for_is_told() -> None:
    (*before, odd) = told(x.UNTIL[State.STAGED], (x.staging_abandoned(),))
    assert all(one.follows for one in before)
    assert (odd.step, odd.follows) == (None, False)
    assert odd.because == "nothing that is recorded asks for it: WriteCapsule was due"


def test_a_persons_decision_is_nobodys_step() -> None:
    ended = told(x.UNTIL[State.PREPARED], (x.retired(review=x.REVIEW),))[-1]
    assert (ended.step, ended.because, ended.follows) == (None, "Ada decided: the server is gone", True)
    assert ended.state is State.RETIRED


def test_after_each_append_it_is_told_what_the_same_command_would_have_done() -> None:
    claimed, opened = told(x.UNTIL[State.ADMITTED], (x.opened(),))
    assert (type(claimed.then), type(opened.then)) == (s.Stage, s.AbandonStaging)


@pytest.mark.parametrize("staged", [False, True])
def test_a_failure_tells_what_was_under_way(staged: bool) -> None:
    more = ((x.source_observed(), x.candidate_staged()),) if staged else ()
    failed = told(x.UNTIL[State.ADMITTED], (x.opened(),), *more, (x.failed(),))[-1]
    assert failed.step == ("Rehearse" if staged else "Stage")
    assert "truly failed" in failed.because


DISPATCHED = (x.UNTIL[State.DISPATCHED],)
PENDING = (x.UNTIL[State.COMMITTED], (x.pending(),))
TWO = ("r1", "r2")


@pytest.mark.parametrize(
    ("before", "appended", "step"),
    [
        (DISPATCHED, (x.fenced(), x.dispatched(epoch=2)), "Settle"),
        (DISPATCHED, (x.proven(),), "Settle"),
        ((*DISPATCHED, (x.fenced(),)), (x.dispatched(epoch=2),), "Settle"),
        (DISPATCHED, (x.started(2),), "StartAttempt"),
        ((x.UNTIL[State.PREPARED],), (x.dispatched(),), "Dispatch"),
        ((x.UNTIL[State.PREPARED],), (x.staging_abandoned(),), "Dispatch"),
        (PENDING, (x.target_observed(),), "Observe"),
        (PENDING, (x.waived(),), "Observe"),
        (PENDING, (x.observation_abandoned(),), "Observe"),
        ((*PENDING, (x.observation_abandoned(),), (x.started(2),)), (x.pending(2, x.RECEIPT),), "Observe"),
        ((x.UNTIL[State.ADMITTED], (x.opened(),), (x.started(2),)), (x.staging_abandoned(),), "AbandonStaging"),
        ((x.STAGED_CANDIDATE,), (x.staging_abandoned(),), "Rehearse"),
        ((x.UNTIL[State.FAILED],), (x.reopened(), x.started(2)), "Claim"),
    ],
)
def test_what_recovery_appends_is_a_step_too(
    before: tuple[tuple[e.Event, ...], ...], appended: tuple[e.Event, ...], step: str
) -> None:
    slot = (x.vacated(live=None),) if x.failed() in before[0] else ()
    last = told(*before, appended, slot=slot)[-1]
    assert (last.step, last.follows) == (step, True), last.because


def test_fewer_replicas_are_part_of_the_proof() -> None:
    key_and_rest = (x.admitted(replicas=TWO), x.started(), x.opened(), x.source_observed())
    staged = (
        x.candidate_staged(replicas=TWO),
        x.staged_observed(),
        x.gates_evaluated(),
        x.capsule_written(replicas=TWO),
    )
    last = told((*key_and_rest, *staged, x.dispatched(replicas=TWO)), (x.reduced("r2"), x.proven(replicas=("r1",))))[-1]
    assert (last.step, last.follows) == ("Settle", True)


def test_a_drop_that_waits_is_worked_off_before_staging() -> None:
    first = [
        StreamAppend(STREAM, 0, x.UNTIL[State.ADMITTED]),
        StreamAppend(ITS_SLOT, 0, (x.slot_opened(), x.claimed(), x.retirement())),
    ]
    history = moments([first, [StreamAppend(ITS_SLOT, 3, (x.deferred(),))], [StreamAppend(STREAM, 2, (x.opened(),))]])
    followed, _ = retrace(history, STREAM, ITS_SLOT)
    assert [(one.step, one.follows) for one in followed] == [("Claim", True), ("WorkOff", True), ("Stage", True)]
