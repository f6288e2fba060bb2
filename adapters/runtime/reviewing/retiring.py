"""``ops retire``: a person ends an operation. The live table is left exactly as it is, and what stays is listed.

Before dispatch it is one append. From then on an attempt is started, replicas that differ are settled, what a late
statement could use is put aside on every replica, and only what is seen afterwards is recorded. Killed anywhere, the
same command goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....domain import events as e
from ....domain.errors import AppendConflict, DponeError, EngineFailed, ErrorCode
from ....domain.limits import CONFLICTS_MAX
from ....domain.operation import AFTER_COMMIT, BEFORE_DISPATCH, State
from ....domain.publication import Rename
from ....domain.retiring import Seen, Verdict, is_open_name, judge, put_aside, put_back
from ....domain.steps import superseded
from ....domain.tables import ReplicaLook
from ..attempt import Running
from ..claiming import attempt_started
from ..publishing import settle_publication
from .case import Case, Confirm, Present, Proposal, live_generation, look, moved_on, recovers_by_itself, released
from .ended import Ended, left, listed, published, result, retired, vacated
from .refusing import check_verdict, not_settled
from .review import Answer, invalid

_ROUNDS_MAX = 3
_NO_LONGER = (
    "The same command can no longer continue, complete or repeat this operation; it answers DPONE_REPLAY_RETIRED.",
    "Evidence that this operation still owes can no longer be taken.",
    "Only ops reopen, another decision, lets it load anew.",
)


def retire(case: Case, present: Present, confirm: Confirm) -> Answer:
    """End the operation. Ended by a person already: nothing is appended. Raises DponeError."""
    with case.opened() as view:
        operation = view.operation
        if operation.state is State.RETIRED and operation.retired is not None and operation.retired.review is not None:
            return Answer(result(case, view))
        if operation.state in BEFORE_DISPATCH:
            return _before_dispatch(case, view, present, confirm)
        stuck = operation.state is State.FAILED and operation.failure is not None and operation.failure.final
        if operation.state is State.DISPATCHED or operation.state in AFTER_COMMIT or stuck:
            return _after_dispatch(case, view, present, confirm)
        raise invalid(
            f"The operation is {operation.state}: it holds no target and there is nothing to end.",
            case.typed("explain"),
        )


# ------------------------------------------------------------------------------------------------ before dispatch


def _before_dispatch(case: Case, view: Running, present: Present, confirm: Confirm) -> Answer:
    looks = look(view)
    told = {} if isinstance(looks, DponeError) else {one.replica: _answers(one) for one in looks}
    appends = ("AttemptStarted and OperationRetired, with the name and the reason", "SlotVacated: the target is free")
    proposal = Proposal(str(case.found.stream), case.known(view, looks, told), appends, _NO_LONGER)
    view.ports.platform.release()
    present(proposal)
    if case.decision.evidence is None:
        raise recovers_by_itself(case)
    confirm(proposal)
    live = live_generation(view)
    candidate = _candidate(view, () if isinstance(looks, DponeError) else looks)
    _once(case, view, [attempt_started(view), retired(case, view, live)], [vacated(view, live), *candidate])
    return Answer(result(case, view), (f"Ended. The target is free; its live table is as it was. {listed(view)}",))


def _candidate(view: Running, looks: Sequence[ReplicaLook]) -> list[e.Event]:
    """The intent to drop what was being filled: as it is seen, else as it was recorded."""
    generation = view.operation.generation
    if generation is None or generation.candidate in view.slot.retirements:
        return []
    name = generation.candidate
    identities = {one.replica: one.tables[name] for one in looks if name in one.tables} or generation.identities or {}
    if not identities:
        return []
    return [
        e.RetirementOpened(
            at=view.now(), name=name, role=e.Role.LEFTOVER, generation=generation.id, identities=identities
        )
    ]


# ------------------------------------------------------------------------------------------------- after dispatch


def _after_dispatch(case: Case, view: Running, present: Present, confirm: Confirm) -> Answer:
    looks = look(view)
    if isinstance(looks, DponeError):
        raise looks
    seen = judge(view.operation, looks, view.expectation())
    told = {replica: f"holds {found.value}" for replica, found in seen.holds.items()}
    proposal = Proposal(str(case.found.stream), case.known(view, looks, told), _appends(view, seen), _NO_LONGER)
    view.ports.platform.release()
    present(proposal)
    check_verdict(case, seen)
    if seen.recovers and case.decision.evidence is None:
        raise recovers_by_itself(case)
    confirm(proposal)
    if view.operation.state is not State.FAILED:
        _once(case, view, [attempt_started(view)], [])
        view.started()
        if seen.verdict is Verdict.MIXED:
            settle_publication(view)
    for _ in range(_ROUNDS_MAX):
        _carry_out(view)
        if not _differs(view):
            break
        settle_publication(view)  # a statement that was under way has swapped on some of the replicas meanwhile
    return _end(case, view)


def _differs(view: Running) -> bool:
    swapped_in_part = judge(view.operation, _look(view), view.expectation()).verdict is Verdict.MIXED
    return swapped_in_part and view.operation.state is State.DISPATCHED


def _appends(view: Running, seen: Seen) -> tuple[str, ...]:
    found = ["AttemptStarted; candidates and arms of the operation get names that no statement knows"]
    if seen.verdict is Verdict.MIXED:
        found.append("PublicationFenced, PublicationDispatched, CommitProven: replicas that differ are settled first")
    if seen.verdict is Verdict.BEFORE:
        found.append("where the target's name is free, the recorded predecessor gets it back")
    found.append("OperationRetired, with the name and the reason")
    if view.slot.guard is not None:
        found.append("ReaderGuardReleased in the target's slot")
    if seen.verdict is Verdict.NEW and view.operation.state is State.DISPATCHED:
        found.append("GenerationPublished: the new generation is live")
    return (*found, "SlotVacated: the target is free", "RetirementOpened for a candidate that is left")


def _carry_out(view: Running) -> None:
    """Put aside what a late statement could use, then give the target's name back where a cut rename left it free."""
    expected, fence = view.expectation(), view.operation.attempt
    _rename(view, put_aside(_look(view), expected, fence))
    if view.operation.state is State.DISPATCHED:
        _rename(view, put_back(_look(view), expected))


def _end(case: Case, view: Running) -> Answer:
    for _ in range(CONFLICTS_MAX):
        ended = _looked_again(case, view)
        ending = retired(case, view, ended.live)
        slot_events = [*released(view), *published(view, ended), vacated(view, ended.live), *left(view, ended)]
        try:
            view.append([ending], slot_events)
        except AppendConflict:
            _rebuild(case, view)
            continue
        return Answer(result(case, view), (f"Ended. The live table was left as it is. {listed(view)}",))
    raise AppendConflict


def _looked_again(case: Case, view: Running) -> Ended:
    """Every replica answers, all hold the same target, and none bears a name that a late statement knows."""
    expected, looks = view.expectation(), _look(view)
    seen = judge(view.operation, looks, expected)
    is_open = any(is_open_name(name, expected) for one in looks if one.reachable for name in one.tables)
    if is_open or seen.verdict in (Verdict.MIXED, Verdict.DIFFERENT, Verdict.UNREACHABLE):
        raise not_settled(case, seen)
    check_verdict(case, seen)
    match seen.verdict:
        case Verdict.NEW:
            return Ended(view.generation.id, view.operation.state is State.DISPATCHED, looks)
        case Verdict.BEFORE:
            if any(expected.table not in one.tables for one in looks if one.replica in expected.predecessor):
                raise not_settled(case, seen)
            return Ended(live_generation(view), False, looks)
        case _:
            return Ended(None, False, looks)


# ---------------------------------------------------------------------------------------------------------- shared


def _once(case: Case, view: Running, events: Sequence[e.Event], slot_events: Sequence[e.Event]) -> None:
    """Append what was confirmed, or nothing when something else was appended meanwhile."""
    try:
        view.append(events, slot_events)
    except AppendConflict:
        view.rebuild()
        raise moved_on(case, view.operation) from None


def _rebuild(case: Case, view: Running) -> None:
    fence, state = view.attempt.fence, view.operation.state
    view.rebuild()
    if view.operation.state is not state:
        raise moved_on(case, view.operation)
    if fence is not None and view.operation.attempt != fence:
        raise superseded(view.operation)


def _look(view: Running) -> tuple[ReplicaLook, ...]:
    looks = look(view)
    if isinstance(looks, DponeError):
        raise DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            looks.what,
            safe="Nothing was ended; every table is there.",
            next="Repeat the same command.",
            cause=looks.code,
        ) from looks
    return looks


def _rename(view: Running, renames: Sequence[Rename]) -> None:
    for rename in renames:
        try:
            view.ports.platform.rename(rename.replica, view.request.key.database, rename.old, rename.new)
        except EngineFailed:
            continue  # the next look tells what became of it


def _answers(one: ReplicaLook) -> str:
    return "answers" if one.reachable else "no answer"
