"""``ops hold`` and ``ops unhold``: a person stops new claims of a target. Whoever owns it now goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ....domain import events as e
from ....domain.errors import AppendConflict
from ....domain.limits import CONFLICTS_MAX
from ....domain.ports import StreamAppend
from ....domain.slot import TargetSlot, evolve
from .review import Answer, Decision
from .targets import one_target, platform_of

if TYPE_CHECKING:
    from ....ledger.store import EventLedger

Decide = Callable[[TargetSlot], e.Event | None]


def hold(ledger: EventLedger, name: str, platform: str | None, decided: Decision, now: Callable[[], str]) -> Answer:
    """Stop new claims. Held already: nothing is appended, and the answer says by whom. Raises DponeError."""

    def event(slot: TargetSlot) -> e.Event | None:
        return None if slot.held is not None else e.SlotHeld(at=now(), review=decided.review)

    changes = (f"New loads of {name} are stopped. An operation that holds it now goes on.",)
    return _decided(ledger, name, platform, event, changes)


def unhold(ledger: EventLedger, name: str, platform: str | None, decided: Decision, now: Callable[[], str]) -> Answer:
    """Allow claims again. Raises DponeError."""

    def event(slot: TargetSlot) -> e.Event | None:
        return None if slot.held is None else e.SlotUnheld(at=now(), review=decided.review)

    return _decided(ledger, name, platform, event, (f"{name} may be loaded again.",))


def _decided(ledger: EventLedger, name: str, platform: str | None, decide: Decide, changes: tuple[str, ...]) -> Answer:
    for _ in range(CONFLICTS_MAX):
        known = one_target(ledger, name, platform)
        event = decide(known.slot)
        if event is None:
            return Answer(_shown(known.slot))
        slot = evolve(known.slot, event)
        try:
            ledger.append([StreamAppend(known.stream, known.slot.version, (event,))])
        except AppendConflict:
            continue
        return Answer(_shown(slot), changes)
    raise AppendConflict


def _shown(slot: TargetSlot) -> dict[str, object]:
    held = slot.held
    return {
        "target": str(slot.target),
        "platform": platform_of(slot),
        "held": held is not None,
        **({"held_by": held.name, "reason": held.reason} if held is not None else {}),
        **({"holder": slot.holder.operation} if slot.holder is not None else {}),
    }
