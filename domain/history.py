"""Whether a stream's history is legal: it folds without objection and stands under the id that its first event says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from uuid import UUID

from . import events as e
from . import operation, platform, slot
from . import platform_events as p
from .errors import IllegalTransition
from .identity import operation_id, platform_stream, slot_id
from .ports import Recorded


def illegality(stream: UUID, recorded: Sequence[Recorded]) -> str | None:
    """What is illegal about this stream, as a sentence, or None."""
    events = [item.event for item in recorded]
    try:
        expected = _fold(events)
    except IllegalTransition as error:
        return error.what
    if expected != stream:
        return "The stream's id is not the one that its first event stands for."
    return None


def _fold(events: Sequence[e.Event]) -> UUID:
    match events[0]:
        case e.OperationAdmitted(key=key):
            operation.fold(events)
            return operation_id(key)
        case e.SlotOpened(target=target):
            reduce(slot.evolve, events, slot.TargetSlot())
            return slot_id(target)
        case p.PlatformProvisioned(platform_id=platform_id):
            reduce(platform.evolve, events, platform.Platform())
            return platform_stream(platform_id)
        case first:
            raise IllegalTransition(f"{type(first).__name__} cannot begin a stream.")
