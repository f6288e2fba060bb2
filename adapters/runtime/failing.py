"""A true failure before dispatch: recorded, the slot vacated, the candidate kept for inspection."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain import events as e
from ...domain.errors import DponeError, ErrorCode
from .attempt import Running
from .claiming import leftover

_ERRORS_RECORDED = 20


def fail(
    running: Running, error: DponeError, *, before: Sequence[e.Event] = (), role: e.Role = e.Role.CANDIDATE
) -> DponeError:
    """Append OperationFailed and SlotVacated in one append (after ``before``) and return the error to raise."""
    generation = running.operation.generation
    retirement: list[e.Event] = []
    if generation is not None:
        retirement = leftover(running, generation.candidate, generation.id, role)
    failed = e.OperationFailed(
        at=running.now(),
        attempt=running.fence,
        code=error.code.value,
        errors=tuple(error.errors[:_ERRORS_RECORDED]),
        candidate=generation.candidate if retirement and generation is not None else None,
    )
    live = running.slot.live.generation if running.slot.live is not None else None
    vacated = e.SlotVacated(at=running.now(), operation=running.request.operation, live=live)
    running.append([*before, failed], [vacated, *retirement])
    return error


def gate_failure(running: Running, sentences: tuple[str, ...]) -> DponeError:
    """Gates said no."""
    key = running.request.key
    return DponeError(
        ErrorCode.EVIDENCE_FAILED,
        f"{len(sentences)} quality gate{'s' if len(sentences) != 1 else ''} failed: {sentences[0]}.",
        safe=f"The live table {key.target} is untouched; the candidate is kept for inspection as "
        f"{key.database}.{running.generation.candidate} until the next attempt, which reads anew.",
        next="Correct the source or the gate, then repeat the same command.",
        errors=sentences,
    )
