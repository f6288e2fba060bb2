"""``ops sweep``: list the tables beside the targets, and drop those that the ledger proves to be ours and unused.

Ours: the name carries a generation that a StagingOpened of this ledger minted for this target, and where its table was
recorded, it is that very table. Unused: neither live, nor kept, nor adopted, nor of an operation that holds the target.
Everything else is listed with why it is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....domain import events as e
from ....domain.errors import AppendConflict, DponeError, EngineFailed
from ....domain.identity import OperationKey
from ....domain.names import generation_of
from ....domain.ports import StreamAppend
from ....domain.slot import TargetSlot, evolve
from ....domain.tables import ReplicaLook, TableIdentity, TargetRef
from ...authority.memory import read_slot
from ..compose import Composer, Composition
from ..lookup import Found, all_operations
from ..recorded import composed, recorded_key
from ..settings import Settings
from .targets import every_target, one_target

if TYPE_CHECKING:
    from ....ledger.store import EventLedger


@dataclass(frozen=True, slots=True)
class Table:
    """A table beside a target. ``left`` says why it is not dropped; None: it may be."""

    target: TargetRef
    name: str
    identities: Mapping[str, TableIdentity]
    left: str | None

    @property
    def shown(self) -> str:
        """Database and name."""
        return f"{self.target.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class Minted:
    """A generation of this ledger: who opened it, and which table it filled (None: it was never recorded)."""

    operation: str
    identities: Mapping[str, TableIdentity] | None


@dataclass(frozen=True, slots=True)
class Swept:
    """What became of one table: ``dropped``, ``deferred`` or ``left``."""

    table: Table
    outcome: str
    reason: str | None = None


def listed(
    ledger: EventLedger, name: str | None, platform: str | None, settings: Settings, composer: Composer
) -> list[Table]:
    """Every table beside the targets, in order of their names. Raises DponeError."""
    chosen = every_target(ledger) if name is None else [one_target(ledger, name, platform)]
    found = list(all_operations(ledger))
    tables: list[Table] = []
    for remembered in chosen:
        newest = _newest(found, remembered.slot.target)
        if newest is None:
            continue  # a target that no operation was ever admitted for has no tables of ours
        composition = composed(settings, newest, composer)
        try:
            composition.ports.platform.acquire()
            looks = composition.ports.platform.look(recorded_key(newest.operation).target)
        finally:
            _close(composition)
        tables += _judged(read_slot(ledger, recorded_key(newest.operation).target).slot, looks, _minted(found, newest))
    return tables


def drop(ledger: EventLedger, tables: list[Table], settings: Settings, composer: Composer) -> Iterator[Swept]:
    """Drop what may be dropped, each by intent, effect and evidence. A target that is claimed meanwhile is left."""
    found = list(all_operations(ledger))
    for target in dict.fromkeys(table.target for table in tables if table.left is None):
        newest = _newest(found, target)
        if newest is None:
            continue
        composition = composed(settings, newest, composer)
        try:
            composition.ports.platform.acquire()
            for table in tables:
                if table.target == target and table.left is None:
                    yield _dropped(composition, table)
        finally:
            _close(composition)


def _dropped(composition: Composition, table: Table) -> Swept:
    ledger, now = composition.ledger, composition.ports.clock.now
    known = read_slot(ledger, table.target)
    if known.slot.holder is not None:
        return Swept(table, "left", "an operation took the target meanwhile")
    slot = known.slot
    if table.name not in slot.retirements:
        opened = e.RetirementOpened(
            at=now(),
            name=table.name,
            role=e.Role.LEFTOVER,
            generation=generation_of(table.name) or "",
            identities=table.identities,
        )
        try:
            ledger.append([StreamAppend(known.stream, slot.version, (opened,))])
        except AppendConflict:
            return Swept(table, "left", "the target changed meanwhile")
        slot = evolve(slot, opened)
    try:
        dropped = tuple(
            replica
            for replica, identity in sorted(table.identities.items())
            if composition.ports.platform.drop(replica, table.target.database, table.name, identity)
        )
    except EngineFailed as error:
        reason = f"the server refused it ({error.engine_code})"
        return _told(composition, table, slot, e.RetirementDeferred(at=now(), name=table.name, reason=reason), reason)
    return _told(composition, table, slot, e.TableRetired(at=now(), name=table.name, dropped=dropped), None)


def _told(composition: Composition, table: Table, slot: TargetSlot, event: e.Event, reason: str | None) -> Swept:
    """Record what came of it. When somebody else was first, the next claimant finds the retirement open."""
    known = read_slot(composition.ledger, table.target)
    if table.name in known.slot.retirements:
        with suppress(AppendConflict):
            composition.ledger.append([StreamAppend(known.stream, known.slot.version, (event,))])
    return Swept(table, "dropped" if reason is None else "deferred", reason)


def _judged(slot: TargetSlot, looks: tuple[ReplicaLook, ...], minted: Mapping[str, Minted]) -> list[Table]:
    if slot.target is None:
        return []
    by_name: dict[str, dict[str, TableIdentity]] = {}
    for look in looks:
        for name, identity in look.tables.items():
            if name != slot.target.table:
                by_name.setdefault(name, {})[look.replica] = identity
    away = [look.replica for look in looks if not look.reachable]
    return [
        Table(slot.target, name, identities, _left(slot, name, identities, minted, away))
        for name, identities in sorted(by_name.items())
    ]


def _left(
    slot: TargetSlot, name: str, identities: Mapping[str, TableIdentity], minted: Mapping[str, Minted], away: list[str]
) -> str | None:
    """The ladder of reasons to leave a table; None when the ledger proves it ours and unused."""
    if away:
        return f"replica {away[0]} does not answer"
    if any(name in kept.names.values() for kept in slot.kept):
        return "a kept generation"
    used = {one.id for kept in slot.kept for one in kept.identities.values()}
    used |= {one.id for one in slot.live.identities.values()} if slot.live is not None else set()
    if any(identity.id in used for identity in identities.values()):
        return "a table that is live or kept under another name"
    if slot.holder is not None:
        return f"operation {slot.holder.operation[:8]} holds the target"
    if name in slot.retirements:
        same = all(slot.retirements[name].identities.get(replica) == one for replica, one in identities.items())
        return None if same else "another table than the one that was to be dropped"
    generation = generation_of(name)
    known = minted.get(generation) if generation is not None else None
    if known is None:
        return "this ledger did not make it"
    if known.identities is not None and any(known.identities.get(r) != one for r, one in identities.items()):
        return "another table than the one that was recorded"
    return None


def _minted(found: list[Found], newest: Found) -> dict[str, Minted]:
    """By the 32 digits: the generations that were opened for the same target, in every incarnation."""
    target = recorded_key(newest.operation).target
    minted: dict[str, Minted] = {}
    for one in found:
        if recorded_key(one.operation).target != target:
            continue
        for event in one.events:
            if isinstance(event, e.StagingOpened):
                minted[event.generation.replace("-", "")] = Minted(str(one.stream), None)
            elif isinstance(event, e.CandidateStaged):
                minted[event.generation.replace("-", "")] = Minted(str(one.stream), event.identities)
    return minted


def _newest(found: list[Found], target: TargetRef | None) -> Found | None:
    """The operation that knows best how the target is reached: the last one that was admitted for it."""
    return next((one for one in reversed(found) if _key(one).target == target), None)


def _key(found: Found) -> OperationKey:
    return recorded_key(found.operation)


def _close(composition: Composition) -> None:
    with suppress(DponeError, OSError):
        composition.close()
