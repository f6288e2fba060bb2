"""The platform's owner, who takes a replica out of the inventory and lets it in again, by the rules of both.

Both wait until the target was published to once: of a slot that was never opened nobody is told of a change.
"""

from __future__ import annotations

from dpone.domain.names import generation_of
from dpone.domain.platform_events import InventoryChanged
from dpone.domain.ports import StreamAppend
from dpone.domain.tables import TableIdentity

from .world import SLOT, TARGET, Table, World


def exclude(world: World, replica: str) -> bool:
    """At any time, but never the last one. The slot is told in the same append."""
    left = tuple(name for name in world.admitted if name != replica)
    if replica in world.excluded or not left or world.ledger.slot.version == 0:
        return False
    _tell(world, left, ())
    world.excluded.add(replica)
    return True


def admit(world: World, replica: str) -> bool:
    """Only while nobody holds the slot; prepared first: the live generation under its name, nothing of a swap's."""
    slot = world.ledger.slot
    ready = slot.version > 0 and slot.holder is None and replica in world.excluded and replica not in world.unreachable
    if not ready or not _prepare(world, replica):
        return False
    inventory = tuple(sorted({*world.admitted, replica}))
    _tell(world, inventory, (replica,))
    world.excluded.discard(replica)
    world.wiped.discard(replica)
    world.bereft.discard(replica)
    return True


def _prepare(world: World, replica: str) -> bool:
    world.resume(replica)
    tables, live = world.tables[replica], world.ledger.slot.live
    wanted = None if live is None else next(iter(live.identities.values()))
    copy = None if wanted is None else world.copy_of(replica, wanted)
    found = tables.get(TARGET.table)
    if (wanted is not None and copy is None) or (found is not None and found.foreign):
        return False
    for name in [name for name in tables if name == TARGET.table or generation_of(name) is not None]:
        tables[f"{name}_retired_{world.number()}"] = tables.pop(name)
    if wanted is not None and copy is not None:
        tables[TARGET.table] = _taken(tables, wanted) or Table(wanted, copy.rows, filled=True)
    return True


def _taken(tables: dict[str, Table], wanted: TableIdentity) -> Table | None:
    """The live generation's table, if this replica has it under another name."""
    name = next((name for name, table in tables.items() if table.identity == wanted and table.filled), None)
    return None if name is None else tables.pop(name)


def _tell(world: World, inventory: tuple[str, ...], admitted: tuple[str, ...]) -> None:
    slot = world.ledger.slot
    live: dict[str, TableIdentity] = {}
    if slot.live is not None:
        known = slot.live.identities
        live = {replica: known.get(replica, next(iter(known.values()))) for replica in inventory}
    event = InventoryChanged(at="2026-01-02T03:04:05.000000Z", replicas=inventory, admitted=admitted, live=live)
    world.ledger.append([StreamAppend(SLOT, slot.version, (event,))])
