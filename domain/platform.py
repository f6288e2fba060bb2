"""The platform: which servers hold targets, and which ledger they answer to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import events as e
from .errors import IllegalTransition


@dataclass(frozen=True, slots=True)
class Platform:
    """State of one platform's stream at ``version`` (0: not provisioned)."""

    version: int = 0
    platform_id: str = ""
    kind: str = ""
    ledger_id: str = ""
    epoch: int = 0
    inventory: tuple[str, ...] = ()


def evolve(platform: Platform, event: e.Event) -> Platform:
    """The platform after ``event``. Raises IllegalTransition."""
    match event:
        case e.PlatformProvisioned() if platform.version == 0:
            return Platform(1, event.platform_id, event.kind, event.ledger_id, event.epoch)
        case e.InventoryAdmitted() if platform.version > 0 and event.replicas:
            return replace(platform, version=platform.version + 1, inventory=event.replicas)
        case _:
            raise IllegalTransition(f"{type(event).__name__} is not allowed here.")
