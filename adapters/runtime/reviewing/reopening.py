"""``ops reopen``: a person lets a finished operation load anew. The old history stays."""

from __future__ import annotations

import shlex

from ....domain import events as e
from ....domain.errors import AppendConflict, DponeError
from ....domain.limits import CONFLICTS_MAX
from ....domain.operation import State
from ....domain.steps import blocked, held
from ..attempt import Running
from ..claiming import attempt_started, check_inventory, check_live
from ..recorded import recorded_key
from .case import Case
from .review import Answer, invalid

_REOPENED = (
    "Reopened: it holds the target now. The same command reads the source anew, unless a later run displaces it before."
)


def reopen(case: Case) -> Answer:
    """Reopen and claim the target, in one append. Reopened by the same decision already: nothing is appended.

    Raises DponeError: REQUEST_INVALID for a state that needs no reopening; TARGET_BLOCKED; FOREIGN_TARGET.
    """
    with case.opened() as view:
        for _ in range(CONFLICTS_MAX):
            if _reopened_already(case, view):
                return Answer(_result(case, view))
            _check(case, view)
            try:
                view.append([_reopened(case, view), attempt_started(view)], [_claimed(view)])
            except AppendConflict:
                view.rebuild()
                continue
            return Answer(_result(case, view), (_REOPENED,))
        raise AppendConflict


def _check(case: Case, view: Running) -> None:
    """The guard ladder of a claim, without its source: nothing is recorded when one of its rungs refuses."""
    operation, slot = view.operation, view.slot
    if operation.state is State.COMPLETE and not operation.process.sink.durable:
        raise invalid("The same command loads this operation anew by itself: it is not durable.", case.same_command)
    if operation.state is State.FAILED and operation.failure is not None and operation.failure.final:
        raise invalid("It failed after its publication was proven: it must be ended first.", case.typed("retire"))
    if operation.state not in (State.COMPLETE, State.RETIRED):
        raise invalid(f"The operation is {operation.state}: the same command continues it.", case.same_command)
    if slot.held is not None:
        raise held(slot, slot.held)
    if slot.holder is not None:
        raise blocked(slot, view.holder)
    check_inventory(view)
    _check_live(view)


def _check_live(view: Running) -> None:
    key, admitted = view.request.key, view.admitted
    view.ports.platform.acquire()
    looks = tuple(one for one in view.ports.platform.look(key.target) if one.replica in admitted)
    try:
        check_live(looks, str(key.target), key.table, view.slot.live)
    except DponeError:
        view.check_view_is_current()
        raise


def _reopened(case: Case, view: Running) -> e.OperationReopened:
    request, decision = view.request, case.decision
    return e.OperationReopened(
        at=view.now(),
        reason=f"{decision.name} reopened it: {decision.reason}",
        configuration=request.configuration,
        configuration_digest=request.configuration_digest,
        changed=(),
        inventory=view.admitted,
        review=decision.review,
    )


def _claimed(view: Running) -> e.SlotClaimed:
    key = view.request.key
    return e.SlotClaimed(
        at=view.now(),
        operation=view.request.operation,
        dag_id=key.dag_id,
        run_id=key.run_id,
        process=key.process,
        displaced=None,
    )


def _reopened_already(case: Case, view: Running) -> bool:
    """The last thing that happened, apart from attempts, is this very decision."""
    if view.operation.state is not State.ADMITTED:
        return False
    recorded = [item.event for item in view.ports.ledger.read(view.operation_stream)]
    last = next((event for event in reversed(recorded) if not isinstance(event, e.AttemptStarted)), None)
    if not isinstance(last, e.OperationReopened) or last.review is None:
        return False
    return (last.review.name, last.review.reason) == (case.decision.name, case.decision.words)


def _result(case: Case, view: Running) -> dict[str, object]:
    key = recorded_key(view.operation)
    return {
        "operation_id": str(case.found.stream),
        "state": view.operation.state.value,
        "attempt": view.operation.attempt,
        "next": shlex.join(["dpone", "run", "MANIFEST", "--dag-id", key.dag_id, "--run-id", key.run_id]),
    }
