"""From recorded events to rows: pure, so that the same events give the same rows on every store and on every day."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...domain import events as e
from ...domain import operation as operations
from ...domain import platform_events as p
from ...domain import slot as slots
from ...domain.errors import IllegalTransition
from ...domain.explain import shown
from ...domain.operation import Operation, State
from ...domain.ports import Recorded
from ...domain.slot import TargetSlot
from .tables import OPERATIONS, SLOTS, TIMELINE, ProjectedTable, Row, Value

_STREAMS_MAX: Final = 2_000
"""States kept in memory; an older stream is read again when its next event arrives."""

History = Callable[[UUID], Sequence[Recorded]]
"""A stream's events, in order, its chain verified."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """The row that stands in ``table`` from now on, in place of one with the same key."""

    table: ProjectedTable
    row: Row


@dataclass(frozen=True, slots=True)
class _Admission:
    """What an operation's row says beside its state: when it began, and who took it on last."""

    admitted_at: str
    started: e.AttemptStarted | None = None


@dataclass(frozen=True, slots=True)
class _OperationStream:
    state: Operation
    told: _Admission


@dataclass(frozen=True, slots=True)
class _SlotStream:
    state: TargetSlot


@dataclass(frozen=True, slots=True)
class _PlatformStream:
    version: int


_Stream = _OperationStream | _SlotStream | _PlatformStream


class Fold:
    """Folds events in ledger order. What it forgot, or never saw, it reads from ``history``."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._streams: OrderedDict[UUID, _Stream] = OrderedDict()

    def changes(self, position: int, recorded: Recorded) -> tuple[RowChange, ...]:
        """The rows that this event changes. Raises IllegalTransition, and what ``history`` raises."""
        before = self._before(recorded)
        after = _evolved(before, recorded)
        self._remember(recorded.stream, after)
        match after:
            case _OperationStream():
                state = RowChange(OPERATIONS, _operation_row(position, recorded, after))
                return state, RowChange(TIMELINE, _operation_line(position, recorded, after.state))
            case _SlotStream():
                state = RowChange(SLOTS, _slot_row(position, recorded, after.state))
                return state, RowChange(TIMELINE, _slot_line(position, recorded, after.state))
            case _PlatformStream():
                return (RowChange(TIMELINE, _line(position, recorded, "platform")),)

    def _before(self, recorded: Recorded) -> _Stream | None:
        known = self._streams.get(recorded.stream)
        if recorded.version == 1:
            return None
        if known is not None and _version(known) == recorded.version - 1:
            return known
        earlier = self._history(recorded.stream)[: recorded.version - 1]
        if len(earlier) != recorded.version - 1:
            raise IllegalTransition(f"Event {recorded.version} of stream {recorded.stream} has no event before it.")
        return _folded(earlier)

    def _remember(self, stream: UUID, state: _Stream) -> None:
        self._streams[stream] = state
        self._streams.move_to_end(stream)
        if len(self._streams) > _STREAMS_MAX:
            self._streams.popitem(last=False)


def _folded(events: Iterable[Recorded]) -> _Stream | None:
    state: _Stream | None = None
    for recorded in events:
        state = _evolved(state, recorded)
    return state


def _version(stream: _Stream) -> int:
    return stream.version if isinstance(stream, _PlatformStream) else stream.state.version


def _evolved(stream: _Stream | None, recorded: Recorded) -> _Stream:
    event = recorded.event
    match stream:
        case None:
            return _begun(event)
        case _OperationStream(state, told):
            if isinstance(event, e.AttemptStarted):
                told = _Admission(told.admitted_at, event)
            return _OperationStream(operations.evolve(state, event), told)
        case _SlotStream(state=slot):
            return _SlotStream(slots.evolve(slot, event))
        case _PlatformStream():
            return _PlatformStream(recorded.version)


def _begun(event: e.Event) -> _Stream:
    match event:
        case e.OperationAdmitted():
            return _OperationStream(operations.evolve(Operation(), event), _Admission(event.at))
        case e.SlotOpened():
            return _SlotStream(slots.evolve(TargetSlot(), event))
        case p.PlatformProvisioned():
            return _PlatformStream(1)
        case _:
            raise IllegalTransition(f"{type(event).__name__} cannot begin a stream.")


def _operation_row(position: int, recorded: Recorded, stream: _OperationStream) -> Row:
    op, started = stream.state, stream.told.started
    if op.key is None:
        raise IllegalTransition("The operation was never admitted.")
    generation, failure, retired = op.generation, op.failure, op.retired
    return _row(
        OPERATIONS,
        operation_id=str(recorded.stream),
        dag_id=op.key.dag_id,
        run_id=op.key.run_id,
        process=op.key.process,
        platform_id=op.key.platform_id,
        target=str(op.key.target),
        state=op.state.value,
        target_commit=op.target_commit,
        governance=op.governance,
        capsule_state=op.capsule_state,
        incarnation=op.incarnation,
        attempt=op.attempt,
        completed_attempt=op.completed_attempt,
        validated_attempt=op.validated_attempt,
        generation=generation.id if generation else None,
        core_digest=generation.core_digest if generation else None,
        epoch=op.publication.epoch if op.publication else None,
        guard=op.guard,
        source_rows=generation.source.row_count if generation and generation.source else None,
        staged_rows=generation.staged.row_count if generation and generation.staged else None,
        target_rows=op.target.row_count if op.target else None,
        gates_passed=_gates_passed(op),
        waived=op.waived,
        failure_code=failure.code if failure else None,
        failure="\n".join(failure.errors) if failure else None,
        retired_reason=retired.reason if retired and op.state is State.RETIRED else None,
        displaced_by=retired.displaced_by if retired and op.state is State.RETIRED else None,
        receipt=op.receipt.receipt if op.receipt else None,
        configuration_digest=op.configuration_digest,
        task_id=started.task_id if started else None,
        map_index=started.map_index if started else None,
        os_user=started.by.os_user if started else None,
        host=started.by.host if started else None,
        admitted_at=stream.told.admitted_at,
        updated_at=recorded.event.at,
        events=recorded.version,
        position=position,
    )


def _gates_passed(op: Operation) -> bool | None:
    if op.generation is None or op.generation.gates is None:
        return None
    return all(gate.passed or gate.severity != "error" for gate in op.generation.gates)


def _slot_row(position: int, recorded: Recorded, slot: TargetSlot) -> Row:
    holder, guard, live, held = slot.holder, slot.guard, slot.live, slot.held
    if slot.target is None:
        raise IllegalTransition("The slot was never opened.")
    return _row(
        SLOTS,
        slot_id=str(recorded.stream),
        platform_id=slot.target.platform_id,
        target=str(slot.target),
        holder=holder.operation if holder else None,
        holder_dag_id=holder.dag_id if holder else None,
        holder_run_id=holder.run_id if holder else None,
        holder_process=holder.process if holder else None,
        guard=guard.id if guard else None,
        guard_operation=guard.operation if guard else None,
        guard_attempt=guard.attempt if guard else None,
        live_generation=live.generation if live else None,
        live_operation=live.operation or None if live else None,
        live_run_id=live.run_id or None if live else None,
        live_rows=live.rows if live else None,
        live_adopted=live.adopted if live else None,
        kept_generations=len(slot.kept),
        open_retirements=len(slot.retirements),
        deferred_retirements=len(slot.deferred),
        held_by=held.name if held else None,
        held_reason=held.reason if held else None,
        replicas=None if slot.inventory is None else ", ".join(slot.inventory),
        updated_at=recorded.event.at,
        events=recorded.version,
        position=position,
    )


def _operation_line(position: int, recorded: Recorded, op: Operation) -> Row:
    if op.key is None:
        raise IllegalTransition("The operation was never admitted.")
    mark, title, text = shown(recorded.event, op) or (None, None, None)
    return _line(
        position,
        recorded,
        "operation",
        target=str(op.key.target),
        operation_id=str(recorded.stream),
        attempt=op.attempt,
        state=op.state.value,
        mark=mark,
        title=title,
        text=text,
    )


def _slot_line(position: int, recorded: Recorded, slot: TargetSlot) -> Row:
    operation = getattr(recorded.event, "operation", None)
    attempt = getattr(recorded.event, "attempt", None)
    return _line(position, recorded, "slot", target=str(slot.target), operation_id=operation or None, attempt=attempt)


def _line(position: int, recorded: Recorded, kind: str, **known: Value) -> Row:
    absent: dict[str, Value] = dict.fromkeys(TIMELINE.names)
    return _row(
        TIMELINE,
        **{
            **absent,
            **known,
            "position": position,
            "stream": str(recorded.stream),
            "version": recorded.version,
            "kind": kind,
            "event": type(recorded.event).__name__,
            "at": recorded.event.at,
        },
    )


def _row(table: ProjectedTable, **values: Value) -> Row:
    return tuple(_storable(values[column.name]) for column in table.columns)


def _storable(value: Value) -> Value:
    """PostgreSQL's text holds no NUL; every store shows the same sign in its place."""
    return value.replace("\x00", "\ufffd") if isinstance(value, str) else value
