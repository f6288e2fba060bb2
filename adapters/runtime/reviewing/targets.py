"""The target that a person names as ``DATABASE.TABLE``, among those that this ledger knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....domain.slot import TargetSlot
from ...authority.memory import Remembered, all_platforms, all_slots
from .review import invalid

if TYPE_CHECKING:
    from ....ledger.store import EventLedger


def one_target(ledger: EventLedger, name: str, platform: str | None) -> Remembered:
    """The target's slot. ``platform`` is an id or the beginning of one, for a name that several platforms have.

    Raises DponeError (REQUEST_INVALID) for a name that no platform, or more than one, has.
    """
    found = [one for one in every_target(ledger) if str(one.slot.target) == name]
    if platform is not None:
        found = [one for one in found if platform_of(one.slot).startswith(platform)]
    if not found:
        raise invalid(f"This ledger knows no target {name}.", "dpone ops list")
    if len(found) > 1:
        ids = ", ".join(platform_of(one.slot) for one in found)
        raise invalid(f"{len(found)} platforms have a target {name}: {ids}.", "Add --platform with one of these ids.")
    return found[0]


def every_target(ledger: EventLedger) -> list[Remembered]:
    """Every target that was ever opened, platform by platform."""
    return [one for platform in all_platforms(ledger) for one in all_slots(ledger, platform.platform_id)]


def platform_of(slot: TargetSlot) -> str:
    """The id of the platform that holds the target."""
    return slot.target.platform_id if slot.target is not None else ""
