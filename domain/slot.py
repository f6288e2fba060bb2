"""The target's slot: who owns a physical target, which generation it holds, which reader may be running.

``evolve`` folds one event; an event that the state does not allow raises IllegalTransition, so that verifying a
ledger is nothing but folding it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import events as e
from . import platform_events as p
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
    """The generation that was last proven live, or an adopted table, which no operation published.

    ``operation`` and ``run_id`` are empty for an adopted table.
    """

    generation: str
    operation: str
    run_id: str
    rows: int
    definition: TableDefinition
    identities: Mapping[str, TableIdentity]
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A predecessor: by which replica it bears which name, and its identity there. An adopted one is never dropped."""

    generation: str
    rows: int
    definition: TableDefinition
    names: Mapping[str, str]
    identities: Mapping[str, TableIdentity]
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class TargetSlot:
    """State of one target's stream at ``version`` (0: never opened).

    ``inventory`` is the platform's as the last change of it said, None when it did not change since the slot is open.
    """

    version: int = 0
    target: TargetRef | None = None
    holder: Holder | None = None
    guard: Guard | None = None
    live: Live | None = None
    kept: tuple[Kept, ...] = ()
    retirements: Mapping[str, e.RetirementOpened] = field(default_factory=dict)
    deferred: Mapping[str, str] = field(default_factory=dict)
    inventory: tuple[str, ...] | None = None
    held: e.Review | None = None


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
            adopted = [item for item in slot.kept if item.adopted and event.name in item.names.values()]
            _demand(not adopted, event, "an adopted table is never dropped by itself")
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
        case e.SlotHeld():
            _demand(slot.held is None, event, "it is held already")
            return replace(slot, held=event.review)
        case e.SlotUnheld():
            _demand(slot.held is not None, event, "it is not held")
            return replace(slot, held=None)
        case e.SlotVacated():
            _demand_holder(slot, event, event.operation)
            _demand(slot.guard is None, event, "a guard is held")
            return replace(slot, holder=None)
        case p.InventoryChanged():
            return _change_inventory(slot, event)
        case p.TableAdopted():
            return _adopt(slot, event)
        case _:
            raise _illegal(event, "it does not belong to a slot")


def _claim(slot: TargetSlot, event: e.SlotClaimed) -> TargetSlot:
    holder = Holder(event.operation, event.dag_id, event.run_id, event.process)
    _demand(slot.held is None, event, "a person stopped new claims")
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
        before = slot.live
        kept = (
            Kept(before.generation, before.rows, before.definition, event.sealed, before.identities, before.adopted),
            *kept,
        )
    return replace(slot, live=live, kept=kept)


def _change_inventory(slot: TargetSlot, event: p.InventoryChanged) -> TargetSlot:
    """A replica may leave while the slot is held; one may come only while nobody holds it."""
    replicas = frozenset(event.replicas)
    _demand(replicas.issuperset(event.admitted), event, "what was admitted is not in the inventory")
    _demand(slot.holder is None or not event.admitted, event, "an operation holds the slot")
    known = slot.live.identities if slot.live is not None else {}
    _demand(event.live.keys() == (replicas if slot.live is not None else set()), event, "the live table is not known")
    same = all(event.live[name] == known[name] for name in replicas & known.keys())
    _demand(same, event, "the live table is another one")
    live = replace(slot.live, identities=event.live) if slot.live is not None else None
    kept = tuple(_kept_on(item, replicas) for item in slot.kept)
    retirements = {name: _retirement_on(item, replicas) for name, item in slot.retirements.items()}
    due = {name: item for name, item in retirements.items() if item.identities}
    return replace(
        slot,
        live=live,
        kept=tuple(item for item in kept if item.names),
        retirements=due,
        deferred={name: reason for name, reason in slot.deferred.items() if name in due},
        inventory=tuple(sorted(replicas)),
    )


def _kept_on(kept: Kept, replicas: frozenset[str]) -> Kept:
    names = {replica: name for replica, name in kept.names.items() if replica in replicas}
    return replace(kept, names=names, identities={name: kept.identities[name] for name in names})


def _retirement_on(retirement: e.RetirementOpened, replicas: frozenset[str]) -> e.RetirementOpened:
    here = {name: identity for name, identity in retirement.identities.items() if name in replicas}
    return replace(retirement, identities=here)


def _adopt(slot: TargetSlot, event: p.TableAdopted) -> TargetSlot:
    _demand(slot.holder is None, event, "an operation holds the slot")
    _demand(slot.guard is None, event, "a guard is held")
    _demand(event.target == slot.target, event, "it speaks of another target")
    if event.generation is None:
        absent = event.definition is None and event.rows is None and not event.identities
        _demand(absent, event, "a table without a generation")
        return replace(slot, live=None)
    if event.definition is None or event.rows is None or not event.identities:
        raise _illegal(event, "a generation without its table")
    live = Live(event.generation, "", "", event.rows, event.definition, event.identities, adopted=True)
    return replace(slot, live=live)


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
