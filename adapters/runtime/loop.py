"""The loop: rebuild, ask for the next step, perform it, until nothing is left or something must stop."""

from __future__ import annotations

from typing import assert_never

from ...domain.errors import AppendConflict, DponeError, EngineBusy, EngineFailed, ErrorCode, LedgerFailed
from ...domain.limits import CONFLICTS_MAX
from ...domain.operation import State
from ...domain.steps import (
    AbandonStaging,
    AcceptReceipt,
    Claim,
    Complete,
    Dispatch,
    EvaluateGates,
    Finished,
    Observe,
    Refuse,
    Rehearse,
    ReleaseGuard,
    Settle,
    Stage,
    StartAttempt,
    Step,
    ValidateReplay,
    WorkOff,
    WriteCapsule,
    next_step,
)
from .attempt import Running
from .claiming import abandon_staging, claim, start_attempt, work_off
from .completing import accept_receipt, complete, release_guard, validate_replay
from .observing import observe
from .publishing import dispatch, settle_publication
from .staging import evaluate_gates, rehearse, stage, write_capsule

_UNKNOWN_OUTCOME = (EngineBusy, EngineFailed, LedgerFailed)


def run(running: Running) -> None:
    """Work on the operation until it is finished. Raises DponeError for every other ending."""
    conflicts = 0
    running.rebuild()
    while True:
        step = next_step(running.operation, running.slot, running.holder, running.request, running.attempt)
        if isinstance(step, Finished):
            return
        running.report.step(step)
        try:
            _perform_or_give_way(running, step)
        except AppendConflict:
            conflicts += 1
            if conflicts > CONFLICTS_MAX:
                raise
            running.rebuild()
        except _UNKNOWN_OUTCOME as error:
            if running.operation.state is State.COMPLETE and running.attempt.fence is not None:
                return  # only clean-up was left, and that is never part of the result
            if running.attempt.fence is None or error.code is ErrorCode.EVIDENCE_INVALID:
                raise
            raise incomplete(error) from error


def _perform_or_give_way(running: Running, step: Step) -> None:
    try:
        _perform(running, step)
    except EngineFailed:
        running.check_not_superseded()  # what failed may be what a newer attempt took away
        raise


def incomplete(error: DponeError) -> DponeError:
    """What is not known yet: the specific code becomes the cause."""
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        error.what,
        safe="Everything needed to continue is in the ledger and in place.",
        next="Repeat the same command.",
        cause=error.code,
        errors=error.errors,
        known=error.known,
    )


def _perform(running: Running, step: Step) -> None:
    match step:
        case Claim():
            claim(running, step)
        case StartAttempt():
            start_attempt(running)
        case WorkOff():
            work_off(running, step)
        case AbandonStaging():
            abandon_staging(running)
        case Stage():
            stage(running)
        case Rehearse():
            rehearse(running, step)
        case EvaluateGates():
            evaluate_gates(running)
        case WriteCapsule():
            write_capsule(running)
        case Dispatch():
            dispatch(running)
        case Settle():
            settle_publication(running)
        case Observe():
            observe(running, step)
        case AcceptReceipt():
            accept_receipt(running)
        case ReleaseGuard():
            release_guard(running)
        case Complete():
            complete(running)
        case ValidateReplay():
            validate_replay(running)
        case Refuse():
            running.check_view_is_current()  # streams read one after the other may not fit each other
            raise step.error
        case Finished():
            return
        case _:
            assert_never(step)
