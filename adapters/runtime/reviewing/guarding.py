"""``ops release-guard``: a person vouches that no reader of the operation is left."""

from __future__ import annotations

from ....domain import events as e
from ....domain.errors import AppendConflict, DponeError
from ....domain.explain import next_for, same_request
from ....domain.operation import State
from ..attempt import Running
from .case import Case, Confirm, Present, Proposal, look, moved_on, recovers_by_itself, released
from .review import Answer, invalid

_APPENDS = ("ObservationAbandoned, with the name and the reason", "ReaderGuardReleased in the target's slot")
_NO_LONGER = (
    "What the reader of the earlier attempt may still find can never be recorded.",
    "The operation keeps the target: successors stay blocked until the same command has completed it.",
)


def release_guard(case: Case, present: Present, confirm: Confirm) -> Answer:
    """Give the kept guard up. Released already: nothing is appended. Raises DponeError."""
    with case.opened() as view:
        if view.operation.state is State.TARGET_PENDING and view.slot.guard is None:
            return Answer(_result(case, view))
        guard = _guard(case, view)
        looks = look(view)
        told = {} if isinstance(looks, DponeError) else {one.replica: _answers(one.reachable) for one in looks}
        proposal = Proposal(str(case.found.stream), case.known(view, looks, told), _APPENDS, _NO_LONGER)
        view.ports.platform.release()
        present(proposal)
        if case.decision.evidence is None:
            raise recovers_by_itself(case)
        confirm(proposal)
        abandoned = e.ObservationAbandoned(
            at=view.now(),
            generation=view.generation.id,
            guard=guard,
            reason=f"{case.decision.name} released its guard: {case.decision.words}",
            review=case.decision.review,
        )
        try:
            view.append([abandoned], released(view))
        except AppendConflict:
            view.rebuild()
            raise moved_on(case, view.operation) from None
        return Answer(_result(case, view), ("The guard is released; the operation still owes its observation.",))


def _guard(case: Case, view: Running) -> str:
    """The id of the guard that the operation holds. Raises DponeError when there is none to release."""
    guard, operation = view.slot.guard, view.operation
    if operation.state is State.TARGET_PENDING and operation.guard is not None and guard is not None:
        return operation.guard
    step = next_for(operation, view.slot, view.holder, same_request(operation))
    if guard is not None and guard.operation == view.request.operation:
        raise invalid(
            f"The operation is {operation.state}: its observation is recorded, and only its own command may release "
            f"the guard. It would now {step.sentence}.",
            case.same_command,
        )
    raise invalid(f"The operation is {operation.state} and holds no guard.", case.typed("explain"))


def _answers(reachable: bool) -> str:
    return "answers" if reachable else "no answer"


def _result(case: Case, view: Running) -> dict[str, object]:
    return {
        "operation_id": str(case.found.stream),
        "state": view.operation.state.value,
        "guard_held": view.slot.guard is not None,
        "next": case.same_command,
    }
