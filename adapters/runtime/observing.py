"""The target observed: under a guard, from a process of its own, once per attempt."""

from __future__ import annotations

from ...domain import events as e
from ...domain.errors import DponeError, ErrorCode, ReaderFailed
from ...domain.ports import ReadPlan, ReadResult
from ...domain.process import AcceptanceMode
from ...domain.slot import Guard
from ...domain.steps import Observe
from ...domain.tables import Observation
from .attempt import Running, defect


def observe(running: Running, step: Observe) -> None:
    """Acquire or take over the guard, observe, record. An unreaped reader keeps its guard."""
    guard = _take_guard(running, take_over=step.take_over)
    generation, key = running.generation, running.request.key
    core = generation.core
    if core is None or core.target_plan is None:
        raise defect("a target observation is not owed")
    plan = ReadPlan(key.database, key.table, running.identities(), core.target_plan.columns, core.target_plan.metrics)
    running.ports.platform.release()
    try:
        result = running.ports.reader.observe(plan)
    except ReaderFailed as error:
        _not_observed(running, guard, error)
        return
    _observed(running, result)


def _take_guard(running: Running, *, take_over: bool) -> str:
    guard = running.ports.ids.new()
    operation, attempt = running.request.operation, running.fence
    pending = e.TargetPending(at=running.now(), generation=running.generation.id, attempt=attempt, guard=guard)
    held: Guard | None = running.slot.guard
    if take_over and held is not None:
        event: e.Event = e.ReaderGuardTakenOver(
            at=running.now(), guard=guard, operation=operation, attempt=attempt, previous=held.id
        )
    else:
        event = e.ReaderGuardAcquired(at=running.now(), guard=guard, operation=operation, attempt=attempt)
    running.append([pending], [event])
    return guard


def _observed(running: Running, result: ReadResult) -> None:
    generation = running.generation
    running.append(
        [
            e.TargetObserved(
                at=running.now(),
                generation=generation.id,
                observation=result.observation,
                replica=result.replica,
                milliseconds=result.milliseconds,
                differences=differences(generation.staged, result.observation),
            )
        ]
    )
    running.counters.final_rows = result.observation.row_count


def _not_observed(running: Running, guard: str, error: ReaderFailed) -> None:
    if not error.reaped:
        raise _incomplete(f"{error.what} Its reader could not be ended, so its guard is kept.", error)
    generation = running.generation
    if running.operation.process.quality.acceptance.mode is AcceptanceMode.WARN_ONLY:
        running.append([e.TargetObservationWaived(at=running.now(), generation=generation.id, reason=error.what)])
        return
    abandoned = e.ObservationAbandoned(
        at=running.now(), generation=generation.id, guard=guard, reason=error.what, review=None
    )
    released = e.ReaderGuardReleased(
        at=running.now(), guard=guard, operation=running.request.operation, attempt=running.fence
    )
    running.append([abandoned], [released])
    raise _incomplete(error.what, error)


def _incomplete(what: str, error: ReaderFailed) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"The target is published and proven, but could not be observed: {what}",
        safe="The new table is live. The same command observes it again: no read, no insert, no publication.",
        next="Repeat the same command.",
        errors=(what,),
        cause=error.cause or ErrorCode.EVIDENCE_REQUIRED,
    )


def differences(staged: Observation | None, target: Observation) -> tuple[str, ...]:
    """What the target's observation counts otherwise than the rehearsal did, by name: shown, never a threshold."""
    if staged is None:
        return ()
    found = [] if staged.row_count == target.row_count else ["row_count"]
    for label, before, after in (
        ("null_counts", staged.null_counts, target.null_counts),
        ("distinct_counts", staged.distinct_counts, target.distinct_counts),
    ):
        found += [f"{label}.{column}" for column, count in after.items() if before.get(column) != count]
    return tuple(found)
