"""The target's slot: who owns a physical target, which generation it holds, which reader may be running.

``evolve`` folds one event; an event that the state does not allow raises IllegalTransition, so that verifying a
ledger is nothing but folding it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import events as e
from .errors import IllegalTransition
from .tables import TableDefinition, TableIdentity, TargetRef


@dataclass(frozen=True, slots=True)
class Holder:
    """The operation that owns the slot."""

    operation: str
    dag_id: str
    run_id: str
    process: str


@dataclass(frozen=True, slots=True)
class Guard:
    """A reader of this operation's attempt may be running."""

    id: str
    operation: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Live:
    """The generation that was last proven live, and the predecessors that are kept, newest first."""

    generation: str
    operation: str
    run_id: str
    rows: int
    definition: TableDefinition
    identities: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True)
class Kept:
    """A predecessor: by which replica it bears which name, and its identity there."""

    generation: str
    names: Mapping[str, str]
    identities: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True)
class TargetSlot:
    """State of one target's stream at ``version`` (0: never opened)."""

    version: int = 0
    target: TargetRef | None = None
    holder: Holder | None = None
    guard: Guard | None = None
    live: Live | None = None
    kept: tuple[Kept, ...] = ()
    retirements: Mapping[str, e.RetirementOpened] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)


def evolve(slot: TargetSlot, event: e.Event) -> TargetSlot:
    """The slot after ``event``. Raises IllegalTransition."""
    evolved = _evolve(slot, event)
    return replace(evolved, version=slot.version + 1)


def _evolve(slot: TargetSlot, event: e.Event) -> TargetSlot:
    if slot.target is None and not isinstance(event, e.SlotOpened):
        raise _illegal(event, "the slot was never opened")
    match event:
        case e.SlotOpened():
            _demand(slot.target is None, event, "the slot is open already")
            return replace(slot, target=event.target)
        case e.SlotClaimed():
            return _claim(slot, event)
        case e.ReaderGuardAcquired():
            _demand(slot.guard is None, event, "a guard is held")
            _demand_holder(slot, event, event.operation)
            return replace(slot, guard=Guard(event.guard, event.operation, event.attempt))
        case e.ReaderGuardTakenOver():
            _demand_guard(slot, event, event.previous, event.operation)
            return replace(slot, guard=Guard(event.guard, event.operation, event.attempt))
        case e.ReaderGuardReleased():
            _demand_guard(slot, event, event.guard, event.operation)
            return replace(slot, guard=None)
        case e.GenerationPublished():
            _demand_holder(slot, event, event.operation)
            return _publish(slot, event)
        case e.ReplayValidated():
            _demand(slot.holder is None, event, "another operation holds the slot")
            live = slot.live.generation if slot.live else None
            _demand(live == event.generation, event, "another generation is live")
            return slot
        case e.RetirementOpened():
            _demand(event.name not in slot.retirements, event, "this retirement is open already")
            kept = tuple(item for item in slot.kept if event.name not in item.names.values())
            return replace(slot, retirements={**slot.retirements, event.name: event}, kept=kept)
        case e.TableRetired():
            _demand(event.name in slot.retirements, event, "no such retirement is open")
            return replace(
                slot,
                retirements={name: item for name, item in slot.retirements.items() if name != event.name},
                deferred={name: reason for name, reason in slot.deferred.items() if name != event.name},
            )
        case e.RetirementDeferred():
            _demand(event.name in slot.retirements, event, "no such retirement is open")
            return replace(slot, deferred={**slot.deferred, event.name: event.reason})
        case e.SlotVacated():
            _demand_holder(slot, event, event.operation)
            _demand(slot.guard is None, event, "a guard is held")
            return replace(slot, holder=None)
        case _:
            raise _illegal(event, "it does not belong to a slot")


def _claim(slot: TargetSlot, event: e.SlotClaimed) -> TargetSlot:
    holder = Holder(event.operation, event.dag_id, event.run_id, event.process)
    _demand(slot.guard is None, event, "a guard is held")
    if slot.holder is not None:
        _demand(event.displaced == slot.holder.operation, event, "another operation holds the slot")
        _demand(displaceable(slot.holder, event.dag_id, event.process, event.run_id), event, "not a later run of it")
    return replace(slot, holder=holder)


def displaceable(holder: Holder, dag_id: str, process: str, run_id: str) -> bool:
    """Whether a claimant is another run of the same dag and process; the holder's own fold tells if it dispatched."""
    return holder.dag_id == dag_id and holder.process == process and holder.run_id != run_id


def _publish(slot: TargetSlot, event: e.GenerationPublished) -> TargetSlot:
    live = Live(event.generation, event.operation, event.run_id, event.rows, event.definition, event.identities)
    kept = slot.kept
    if slot.live is not None and event.sealed:
        kept = (Kept(slot.live.generation, event.sealed, slot.live.identities), *kept)
    return replace(slot, live=live, kept=kept)


def _demand_holder(slot: TargetSlot, event: e.Event, operation: str) -> None:
    _demand(slot.holder is not None and slot.holder.operation == operation, event, "it does not hold the slot")


def _demand_guard(slot: TargetSlot, event: e.Event, guard: str, operation: str) -> None:
    held = slot.guard is not None and slot.guard.id == guard and slot.guard.operation == operation
    _demand(held, event, "this guard is not held")


def _demand(condition: bool, event: e.Event, why: str) -> None:
    if not condition:
        raise _illegal(event, why)


def _illegal(event: e.Event, why: str) -> IllegalTransition:
    return IllegalTransition(f"{type(event).__name__} is not allowed here: {why}.")
