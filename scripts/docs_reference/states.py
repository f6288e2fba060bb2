"""The state diagram and the transition table, found by trying: every event on every state, by the real fold.

The histories are the examples of the domain's tests, in three configurations: with a target observation owed
(capsule version 2), without one (version 1), and not durable at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from tests.domain import examples as x

from dpone.domain import operation as operations
from dpone.domain import slot as slots
from dpone.domain.errors import IllegalTransition
from dpone.domain.event_table import OPERATION_EVENTS, SHARED_EVENTS
from dpone.domain.events import Event, OperationAdmitted
from dpone.domain.explain import next_for
from dpone.domain.operation import Operation, State
from dpone.domain.process import Process
from dpone.domain.slot import TargetSlot
from dpone.domain.steps import Attempt, next_step

from .pages import table

_ASIDE = (State.FAILED, State.RETIRED)


@dataclass(frozen=True, slots=True)
class Stop:
    """One place where an operation can stand: a history that leads there, and what the slot holds then."""

    label: str
    events: tuple[Event, ...]
    slot: tuple[Event, ...]
    configured: Process = x.PROCESS

    @property
    def operation(self) -> Operation:
        return operations.fold(self.events)


def _with(configured: Process, events: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(
        x.admitted(configured=configured) if isinstance(event, OperationAdmitted) else event for event in events
    )


def _slot_of(state: State) -> tuple[Event, ...]:
    match state:
        case State.NEW:
            return ()
        case State.ADMITTED | State.STAGED | State.PREPARED | State.DISPATCHED:
            return x.HELD
        case State.COMMITTED | State.GUARD_RELEASED:
            return x.LIVE
        case State.TARGET_PENDING | State.OBSERVED:
            return x.GUARDED
        case State.COMPLETE:
            return x.DONE
        case State.FAILED | State.RETIRED:
            return (*x.HELD, x.vacated(live=None))


def _observing() -> Iterator[Stop]:
    """Version 2, with the places inside ADMITTED, OBSERVED and GUARD_RELEASED that make a difference."""
    until = x.UNTIL
    for state, events in until.items():
        yield Stop(state.value, events, _slot_of(state))
        if state is State.ADMITTED:
            yield Stop("ADMITTED, candidate open", (*events, x.opened()), x.HELD)
            yield Stop("ADMITTED, source observed", (*events, x.opened(), x.source_observed()), x.HELD)
            yield Stop("ADMITTED, candidate filled", x.STAGED_CANDIDATE, x.HELD)
            yield Stop("ADMITTED, candidate observed", (*x.STAGED_CANDIDATE, x.staged_observed()), x.HELD)
        if state is State.DISPATCHED:
            yield Stop("DISPATCHED, fenced", (*events, x.fenced()), x.HELD)
            two = (x.admitted(replicas=("replica_1", "replica_2")), *events[1:])
            yield Stop("DISPATCHED, a replica excluded since", two, x.HELD)
        if state is State.TARGET_PENDING:
            abandoned = (*events, x.observation_abandoned())
            yield Stop("TARGET_PENDING, no guard", abandoned, x.LIVE)
        if state is State.OBSERVED:
            yield Stop("OBSERVED, receipt accepted", (*events, x.receipt()), x.GUARDED)
    yield Stop("FAILED after the proof", x.FAILED_FOR_GOOD, x.LIVE)


def _plain() -> Iterator[Stop]:
    """Version 1 (``v1``) and not durable (``plain``), from where they leave the way of version 2."""
    first, plain = x.process(observes=False), x.process(observes=False, durable=False)
    committed = (*_with(first, x.UNTIL[State.STAGED]), x.capsule_written(observes=False), x.dispatched(), x.proven())
    receipt = (*committed, x.receipt(observes=False))
    yield Stop("COMMITTED (v1)", committed, x.LIVE, first)
    yield Stop("COMMITTED (v1), receipt accepted", receipt, x.LIVE, first)
    staged = _with(plain, x.UNTIL[State.STAGED])
    yield Stop("STAGED (not durable)", staged, x.HELD, plain)
    yield Stop("COMMITTED (not durable)", (*staged, x.dispatched(), x.proven()), x.LIVE, plain)


def _candidates(attempt: int) -> Iterator[Event]:
    """Every kind of event of an operation's stream, as this attempt would append it."""
    yield from (
        x.started(attempt + 1),
        x.opened(attempt),
        x.source_observed(),
        x.candidate_staged(),
        x.staging_abandoned(),
    )
    yield from (x.staged_observed(), x.gates_evaluated(), x.gates_evaluated(passed=False))
    yield from (x.capsule_written(), x.capsule_written(observes=False))
    yield from (x.dispatched(attempt), x.dispatched(attempt, epoch=2), x.fenced(attempt), x.proven(attempt))
    yield from (x.pending(attempt), x.target_observed(), x.waived(), x.observation_abandoned())
    yield from (x.receipt(attempt), x.receipt(attempt, observes=False), x.released(attempt))
    yield from (x.completed(attempt), x.completed(attempt, receipt=None), x.validated(attempt))
    yield from (x.failed(attempt), x.retired(), x.reopened(), x.admitted(), x.reduced("replica_2", attempt=attempt))
    yield from (x.retired(review=x.REVIEW), x.reopened(review=x.REVIEW))


def _transitions(stop: Stop) -> dict[str, State]:
    """Which events are legal here, and where each leads."""
    before = stop.operation
    found: dict[str, State] = {}
    for event in _candidates(max(before.attempt, 1)):
        try:
            found.setdefault(_name(event), operations.evolve(before, event).state)
        except IllegalTransition:
            continue
    return {
        name: state
        for name, state in found.items()
        if name.removesuffix(_REVIEWED) == name or _plainly(name) not in found
    }


_REVIEWED = " (a person)"


def _name(event: Event) -> str:
    """A person's decision is told apart from what a run does by itself."""
    return type(event).__name__ + (_REVIEWED if getattr(event, "review", None) is not None else "")


def _plainly(name: str) -> str:
    return name.removesuffix(_REVIEWED)


def transitions() -> str:
    """The table: every place, every legal event, where it leads."""
    stops = (*_observing(), *_plain())
    reached = {_plainly(name) for stop in stops for name in _transitions(stop)}
    if missing := {kind.__name__ for kind in (*OPERATION_EVENTS, *SHARED_EVENTS)} - reached:
        raise ValueError(f"no example leads to {sorted(missing)}")
    rows = [(f"`{stop.label}`", _listed(stop)) for stop in stops]
    return table(("where the operation stands", "events that are legal there, and where they lead"), rows)


def _listed(stop: Stop) -> str:
    here = stop.operation.state
    return ", ".join(
        f"`{name}`" if state is here else f"`{name}` → **{state.value}**" for name, state in _transitions(stop).items()
    )


def next_steps() -> str:
    """The table: for every place, what the attempt that holds the fence does, and what the same command would do."""
    rows = []
    for stop in (*_observing(), *_plain()):
        operation, slot = stop.operation, reduce(slots.evolve, stop.slot, TargetSlot())
        asked = x.request(configured=stop.configured)
        step = next_step(operation, slot, None, asked, Attempt(operation.attempt or None))
        again = next_for(operation, slot, None, asked)
        rows.append((f"`{stop.label}`", f"`{type(step).__name__}`", f"{type(again).__name__}: {again.sentence}"))
    return table(("where the operation stands", "next step of this attempt", "the same command, typed now"), rows)


def diagram() -> str:
    """The states from top to bottom, the event that leads on, and the ways out."""
    edges = _edges()
    order = [state for state in State if state not in _ASIDE]
    lines = []
    for place, state in enumerate(order):
        asides = [
            f"──{name}──▶ {other.value}" for (origin, other), name in edges.items() if _is_aside(origin, other, state)
        ]
        lines.append(f"  {f'[ {state.value} ]':<20}  {'   '.join(asides)}".rstrip())
        lines += [f"      {arrow}" for arrow in _jumps(edges, order, place)]
        if place + 1 < len(order):
            lines += ["      │", f"      │  {edges[state, order[place + 1]]}", "      ▼"]
    lines += ["", *_returns(edges)]
    return "```text\n" + "\n".join(lines) + "\n```"


def _is_aside(origin: State, other: State, state: State) -> bool:
    return origin is state and other in _ASIDE


def _jumps(edges: dict[tuple[State, State], str], order: list[State], place: int) -> list[str]:
    """Ways forward that leave states out."""
    return [
        f"├─ {name} ─▶ {other.value}   ({_WHY[order[place], other]})"
        for (origin, other), name in edges.items()
        if origin is order[place] and other in order and order.index(other) > place + 1
    ]


_WHY = {
    (State.STAGED, State.DISPATCHED): "not durable: no capsule",
    (State.COMMITTED, State.COMPLETE): "no target observation owed",
}


def _returns(edges: dict[tuple[State, State], str]) -> list[str]:
    """Ways back."""
    place = list(State).index
    back: dict[tuple[str, State], list[str]] = {}
    for (origin, other), name in edges.items():
        if place(other) < place(origin):
            back.setdefault((name, other), []).append(origin.value)
    return [f"  {name}: {', '.join(origins)} ─▶ {other.value}" for (name, other), origins in back.items()]


def _edges() -> dict[tuple[State, State], str]:
    """Every change of state, with the event that makes it."""
    found: dict[tuple[State, State], list[str]] = {}
    for stop in (*_observing(), *_plain()):
        here = stop.operation.state
        for name, state in _transitions(stop).items():
            if state is not here and name not in found.setdefault((here, state), []):
                found[here, state].append(name)
    return {edge: " or ".join(names) for edge, names in found.items()}
