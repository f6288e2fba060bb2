"""What can have happened to an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .capsule import CapsuleCore
from .event import By, Event, Review
from .identity import OperationKey
from .quality import GateResult
from .tables import Observation, TableDefinition, TableIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationAdmitted(Event):
    """The operation exists: its key, the whole semantic configuration, and the replicas it speaks of."""

    key: OperationKey
    configuration: Mapping[str, Any]
    configuration_digest: str
    inventory: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(Event):
    """A process took the operation on. ``attempt`` is its fence: higher than every earlier one.

    The task's parts, down to Airflow's own try and task instance, are recorded and never part of the identity.
    """

    attempt: int
    by: By
    manifest_sha256: str | None
    revision: str | None
    task_id: str | None
    map_index: int | None
    try_number: int | None
    task_instance: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingOpened(Event):
    """Intent: one read of the source into one new table. Mints the generation, which is the load's id as well.

    ``source_schema`` is the digest of the source's own ordered columns.
    """

    generation: str
    attempt: int
    candidate: str
    definition: TableDefinition
    source_schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceObserved(Event):
    """Evidence: what the one read of the source yielded, and what the source was."""

    generation: str
    observation: Observation
    fingerprint: Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStaged(Event):
    """Evidence: the candidate is filled and synced. Rows are the server's own count, by replica."""

    generation: str
    candidate: str
    rows: Mapping[str, int]
    identities: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingAbandoned(Event):
    """The generation's candidate is incomplete or lost; its observations, gates and capsule are void."""

    generation: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedObserved(Event):
    """Evidence: the candidate as counted, by a reader process when a target observation is owed (the rehearsal)."""

    generation: str
    observation: Observation
    replica: str
    milliseconds: int
    rehearsed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GatesEvaluated(Event):
    """The gates' verdicts over source and staged observations."""

    generation: str
    gates: tuple[GateResult, ...]
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleWritten(Event):
    """The sealed core. The two maxima are the proven worst cases of the finished envelope and the reader's reply."""

    generation: str
    core: CapsuleCore
    core_digest: str
    envelope_bytes_max: int
    reply_bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationDispatched(Event):
    """Intent: one swap statement to these replicas. ``predecessor`` is what each holds; empty: no table yet."""

    generation: str
    epoch: int
    attempt: int
    candidate: str
    replicas: tuple[str, ...]
    exchange: bool
    predecessor: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationFenced(Event):
    """On replicas that had not swapped the new table was renamed, so that no earlier statement can succeed there."""

    generation: str
    epoch: int
    attempt: int
    candidate: str
    replicas: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryReduced(Event):
    """These replicas were excluded from the platform since: the operation does not speak of them any more."""

    attempt: int
    excluded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProven(Event):
    """Evidence: every replica holds the new generation as the target and no statement can take it back."""

    generation: str
    attempt: int
    identities: Mapping[str, TableIdentity]
    sealed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPending(Event):
    """Intent: the target is about to be observed under this guard."""

    generation: str
    attempt: int
    guard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetObserved(Event):
    """Evidence: the target as counted. ``differences`` names what differs from the staged observation."""

    generation: str
    observation: Observation
    replica: str
    milliseconds: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetObservationWaived(Event):
    """The observation could not be taken and the manifest said warn_only."""

    generation: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationAbandoned(Event):
    """The observation ended without a result and its worker is certainly gone, or a person vouched for that."""

    generation: str
    guard: str
    reason: str
    review: Review | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptAccepted(Event):
    """The live generation was validated by this attempt. A stored receipt never authorises a later success."""

    receipt: str
    attempt: int
    generation: str
    core_digest: str
    identities: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCompleted(Event):
    """Done: evidence, receipt and guard release are all in the ledger."""

    attempt: int
    generation: str
    receipt: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFailed(Event):
    """A gate, observation, value, size or schema truly failed. ``candidate``, if any, is kept for inspection."""

    attempt: int
    code: str
    errors: tuple[str, ...]
    candidate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRetired(Event):
    """Ended for good: displaced by a later run before it dispatched, or by a reviewed recovery.

    ``live`` is the generation that the target holds then. Candidates and arms bear names that no statement knows.
    """

    reason: str
    displaced_by: str | None
    live: str | None
    review: Review | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReopened(Event):
    """A new incarnation in the same stream, with the configuration that holds from here on."""

    reason: str
    configuration: Mapping[str, Any]
    configuration_digest: str
    changed: tuple[str, ...]
    inventory: tuple[str, ...]
    review: Review | None
