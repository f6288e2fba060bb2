"""What can have happened to a target's slot, and the two events that stand in the operation's stream as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .event import Event, Review
from .tables import TableDefinition, TableIdentity, TargetRef

# ----------------------------------------------------------------------------------------------------- both streams


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderGuardReleased(Event):
    """No reader of this operation is left. Stored in the operation's and in the slot's stream."""

    guard: str
    operation: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayValidated(Event):
    """A completed operation was asked again and its generation is still live. Stored in both streams."""

    operation: str
    attempt: int
    generation: str
    receipt: str
    core_digest: str
    identities: Mapping[str, TableIdentity]


# -------------------------------------------------------------------------------------------- the target's slot


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOpened(Event):
    """The target is known to this ledger."""

    target: TargetRef


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotClaimed(Event):
    """One operation owns the target from here on."""

    operation: str
    dag_id: str
    run_id: str
    process: str
    displaced: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderGuardAcquired(Event):
    """A reader of this operation's attempt may be running."""

    guard: str
    operation: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderGuardTakenOver(Event):
    """A later attempt of the same operation took over a guard whose reader nobody listens to any more."""

    guard: str
    operation: str
    attempt: int
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPublished(Event):
    """A generation is proven live. ``sealed`` is the predecessor's new name, by replica."""

    generation: str
    operation: str
    run_id: str
    rows: int
    definition: TableDefinition
    identities: Mapping[str, TableIdentity]
    sealed: Mapping[str, str]


class Role(StrEnum):
    """What a table to be dropped was."""

    PREDECESSOR = "predecessor"
    CANDIDATE = "candidate"
    LEFTOVER = "leftover"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementOpened(Event):
    """Intent: this table, by identity, is to be dropped. Never a part of any result."""

    name: str
    role: Role
    generation: str
    identities: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRetired(Event):
    """Evidence: the table is gone. ``dropped`` names the replicas where it was still there."""

    name: str
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementDeferred(Event):
    """The drop was refused, for example by a size limit. It stays open and blocks nothing."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHeld(Event):
    """A person stopped new claims of the target. Whoever owns it now goes on."""

    review: Review


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotUnheld(Event):
    """A person allowed claims again."""

    review: Review


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotVacated(Event):
    """The target is free for the next operation; ``live`` is the generation that it holds."""

    operation: str
    live: str | None
