"""What the ledger knows of platforms and of their targets: folded from events, in one pass where all are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ...domain import events as e
from ...domain import operation as operations
from ...domain import platform as platforms
from ...domain import platform_events as p
from ...domain import slot as slots
from ...domain.identity import platform_stream, slot_id
from ...domain.operation import Operation
from ...domain.platform import Platform
from ...domain.ports import StreamAppend
from ...domain.slot import TargetSlot
from ...domain.tables import TargetRef
from .refusals import blocked, not_admitted

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Remembered:
    """A target's slot and the stream it stands in."""

    stream: UUID
    slot: TargetSlot


def read_platform(ledger: EventLedger, platform_id: str) -> Platform:
    """The platform as its events say; version 0 when this ledger knows none of that id."""
    return reduce(platforms.evolve, (item.event for item in ledger.read(platform_stream(platform_id))), Platform())


def read_slot(ledger: EventLedger, target: TargetRef) -> Remembered:
    """A target's slot; version 0 when it was never opened."""
    stream = slot_id(target)
    slot = reduce(slots.evolve, (item.event for item in ledger.read(stream)), TargetSlot())
    return Remembered(stream, slot)


def all_platforms(ledger: EventLedger) -> tuple[Platform, ...]:
    """Every platform of this ledger, in the order in which they were provisioned."""
    ids = [event.platform_id for event in _firsts(ledger) if isinstance(event, p.PlatformProvisioned)]
    return tuple(read_platform(ledger, platform_id) for platform_id in ids)


def all_slots(ledger: EventLedger, platform_id: str) -> tuple[Remembered, ...]:
    """Every target of the platform that was ever opened, in order of its name."""
    targets = [event.target for event in _firsts(ledger) if isinstance(event, e.SlotOpened)]
    mine = sorted((target for target in targets if target.platform_id == platform_id), key=str)
    return tuple(read_slot(ledger, target) for target in mine)


def holder_of(ledger: EventLedger, slot: TargetSlot) -> Operation | None:
    """The operation that holds the slot, folded; None when nobody does."""
    if slot.holder is None:
        return None
    return operations.fold(item.event for item in ledger.read(UUID(slot.holder.operation)))


def require_free(ledger: EventLedger, slot: TargetSlot) -> None:
    """Raise DponeError (TARGET_BLOCKED), naming the holder, while an operation holds the slot."""
    if slot.holder is not None:
        raise blocked(slot, holder_of(ledger, slot))


def only_platform(ledger: EventLedger, cluster: str, reference: str) -> Platform:
    """The one platform that this ledger provisioned on a cluster of this name: needs no server.

    Raises DponeError (NOT_ADMITTED) for none, or for several, which only their servers could tell apart.
    """
    found = [known for known in all_platforms(ledger) if known.cluster == cluster]
    if len(found) == 1:
        return found[0]
    if not found:
        raise not_admitted(
            f"This ledger knows no platform on the cluster {cluster}.",
            f"dpone platform provision --connection {reference} --cluster {cluster}",
        )
    raise not_admitted(
        f"This ledger knows {len(found)} platforms on clusters named {cluster}.",
        "Name the databases of the one that is meant with --database.",
    )


def inventory_changes(
    remembered: tuple[Remembered, ...], names: tuple[str, ...], admitted: tuple[str, ...], at: str
) -> list[StreamAppend]:
    """The same change for every slot, each at the version that was read. A replica that comes holds the live table
    under its own Keeper path, which is one for all replicas, so that its identity is known."""
    appends = []
    for known in remembered:
        live = known.slot.live
        shown = {}
        if live is not None:
            same = next(iter(live.identities.values()))
            shown = {name: live.identities.get(name, same) for name in names}
        event = p.InventoryChanged(at=at, replicas=names, admitted=admitted, live=shown)
        appends.append(StreamAppend(known.stream, known.slot.version, (event,)))
    return appends


def _firsts(ledger: EventLedger) -> Iterator[e.Event]:
    """The first event of every stream, in ledger order."""
    position = 1
    while page := ledger.notifications(position, _PAGE):
        for notified in page:
            if notified.recorded.version == 1:
                yield notified.recorded.event
        position = page[-1].position + 1
