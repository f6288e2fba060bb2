"""The closed table from a stored event's topic to its class, and the way there and back.

A topic is a class's name. When a class must change it gets a successor with a topic of its own
(``OperationAdmitted.v2``) and an upcaster; the old golden files stay. Stored data never chooses what is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import events as e
from .codec import decode, encode

OPERATION_EVENTS = (
    e.OperationAdmitted,
    e.AttemptStarted,
    e.StagingOpened,
    e.SourceObserved,
    e.CandidateStaged,
    e.StagingAbandoned,
    e.StagedObserved,
    e.GatesEvaluated,
    e.CapsuleWritten,
    e.PublicationDispatched,
    e.PublicationFenced,
    e.CommitProven,
    e.TargetPending,
    e.TargetObserved,
    e.TargetObservationWaived,
    e.ObservationAbandoned,
    e.ReceiptAccepted,
    e.OperationCompleted,
    e.OperationFailed,
    e.OperationRetired,
    e.OperationReopened,
)
SHARED_EVENTS = (e.ReaderGuardReleased, e.ReplayValidated)
SLOT_EVENTS = (
    e.SlotOpened,
    e.SlotClaimed,
    e.ReaderGuardAcquired,
    e.ReaderGuardTakenOver,
    e.GenerationPublished,
    e.RetirementOpened,
    e.TableRetired,
    e.RetirementDeferred,
    e.SlotVacated,
)
PLATFORM_EVENTS = (e.PlatformProvisioned, e.InventoryAdmitted)

EVENT_TYPES: Mapping[str, type[e.Event]] = {
    kind.__name__: kind for kind in (*OPERATION_EVENTS, *SHARED_EVENTS, *SLOT_EVENTS, *PLATFORM_EVENTS)
}
"""The closed table: the only classes that stored data can become."""


def event_to_data(event: e.Event) -> dict[str, Any]:
    """The event's fields as JSON values."""
    data: dict[str, Any] = encode(event)
    return data


def event_from_data(topic: str, data: Any) -> e.Event:
    """The event that ``topic`` and ``data`` say. Raises ValueError for an unknown topic or a shape that is off."""
    kind = EVENT_TYPES.get(topic)
    if kind is None:
        raise ValueError(f"unknown event {topic[:60]!r}")
    return decode(kind, data)
