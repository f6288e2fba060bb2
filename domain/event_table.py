"""The closed table from a stored event's topic to its class, and the way there and back.

A topic is a class's name. When a class must change, its successor is stored under a topic of its own
(``InventoryAdmitted.v2``) and an upcaster turns what stands under the earlier topic into the fields of today; the old
golden files stay. Stored data never chooses what is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import events as e
from . import platform_events as p
from .codec import DecodeError, decode, encode

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
    e.InventoryReduced,
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
    e.SlotHeld,
    e.SlotUnheld,
    e.SlotVacated,
    p.InventoryChanged,
    p.TableAdopted,
)
PLATFORM_EVENTS = (
    p.PlatformProvisioned,
    p.DatabasesAdded,
    p.KeeperAttested,
    p.InventoryAdmitted,
    p.ReplicaExcluded,
    p.InventoryRevoked,
    p.EpochRaised,
)

Upcaster = Callable[[Mapping[str, Any]], dict[str, Any]]


def _provisioned_v1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 knew the embedded platform only: no cluster, and every database."""
    return _with(data, cluster=None, databases=[])


def _admitted_v1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 named its replicas and said nothing else of them."""
    names = data.get("replicas")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DecodeError("InventoryAdmitted.replicas: a list of names is expected")
    records = [
        {
            "name": name,
            "host": None,
            "port": None,
            "version": "",
            "macros": {},
            "shard_number": 1,
            "replica_number": number,
        }
        for number, name in enumerate(names, start=1)
    ]
    return {**_with(data, internal_replication="embedded"), "replicas": records}


def _with(data: Mapping[str, Any], **added: Any) -> dict[str, Any]:
    """The data with fields that its version did not have. Raises DecodeError when it has one of them all the same."""
    if not data.keys().isdisjoint(added):
        raise DecodeError(f"unknown fields {sorted(data.keys() & added.keys())}")
    return {**data, **added}


def _started_v1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 did not say which of a task's tries it was."""
    return _with(data, try_number=None, task_instance=None)


def _unreviewed_v1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 knew no decision of a person."""
    return _with(data, review=None)


def _retired_v1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 knew only displacement, which leaves the live generation unsaid."""
    return _with(data, live=None, review=None)


UPCASTERS: Mapping[str, Upcaster] = {
    "PlatformProvisioned": _provisioned_v1,
    "InventoryAdmitted": _admitted_v1,
    "AttemptStarted": _started_v1,
    "ObservationAbandoned": _unreviewed_v1,
    "OperationReopened": _unreviewed_v1,
    "OperationRetired": _retired_v1,
}
"""An earlier topic → what turns its data into that of its class today."""

_VERSIONS: Mapping[type[e.Event], tuple[str, ...]] = {
    p.PlatformProvisioned: ("PlatformProvisioned", "PlatformProvisioned.v2"),
    p.InventoryAdmitted: ("InventoryAdmitted", "InventoryAdmitted.v2"),
    e.AttemptStarted: ("AttemptStarted", "AttemptStarted.v2"),
    e.ObservationAbandoned: ("ObservationAbandoned", "ObservationAbandoned.v2"),
    e.OperationReopened: ("OperationReopened", "OperationReopened.v2"),
    e.OperationRetired: ("OperationRetired", "OperationRetired.v2"),
}
"""All topics of the classes that changed, oldest first: the last one is written, all are read."""

_KINDS = (*OPERATION_EVENTS, *SHARED_EVENTS, *SLOT_EVENTS, *PLATFORM_EVENTS)

EVENT_TYPES: Mapping[str, type[e.Event]] = {
    topic: kind for kind in _KINDS for topic in _VERSIONS.get(kind, (kind.__name__,))
}
"""The closed table: the only classes that stored data can become."""

TOPICS: Mapping[type[e.Event], str] = {kind: topic for topic, kind in EVENT_TYPES.items()}
"""The topic under which each class is written."""


def event_to_data(event: e.Event) -> dict[str, Any]:
    """The event's fields as JSON values."""
    data: dict[str, Any] = encode(event)
    return data


def event_from_data(topic: str, data: Any) -> e.Event:
    """The event that ``topic`` and ``data`` say. Raises ValueError for an unknown topic or a shape that is off."""
    kind = EVENT_TYPES.get(topic)
    if kind is None:
        raise ValueError(f"unknown event {topic[:60]!r}")
    upcast = UPCASTERS.get(topic)
    if upcast is None:
        return decode(kind, data)
    if not isinstance(data, Mapping):
        raise DecodeError(f"{topic}: an object is expected")
    return decode(kind, upcast(data))
