"""What can have happened to a platform: provisioning, attestation, its inventory, adopted tables, moves of its ledger.

A platform is the servers that hold targets and answer to one ledger. ``InventoryChanged`` and ``TableAdopted`` stand in
the slots' streams, the latter in the platform's as well, so that neither happens to a slot unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .events import By, Event
from .tables import TableDefinition, TableIdentity, TargetRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedReplica:
    """One server as it was when it was admitted. ``name`` is its ``{replica}`` macro and what messages call it.

    ``host`` and ``port`` (native protocol) are used to connect and never shown; null on the embedded engine. The
    version is recorded, never compared.
    """

    name: str
    host: str | None
    port: int | None
    version: str
    macros: Mapping[str, str]
    shard_number: int
    replica_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformProvisioned(Event):
    """The platform's id stands on the platform together with this ledger's id and epoch.

    ``cluster`` is the cluster's name on its servers, null for the embedded engine. An empty ``databases`` means all.
    """

    platform_id: str
    kind: str
    ledger_id: str
    epoch: int
    cluster: str | None
    databases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasesAdded(Event):
    """These are all the platform's databases from now on: those that it had, and others."""

    databases: tuple[str, ...]
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperAttested(Event):
    """Evidence: a node written through one Keeper client was seen by each replica under the same transaction id.

    ``path`` is the node (removed since), ``czxid`` the 64-bit id of the transaction that created it, ``seen`` the one
    that each replica showed, ``keeper`` the service's hosts and ports.
    """

    path: str
    czxid: str
    seen: Mapping[str, str]
    keeper: tuple[str, ...]
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryAdmitted(Event):
    """These replicas hold the platform's targets: the whole inventory, in the order of their names.

    ``internal_replication`` says how it was known that the cluster replicates by itself: ``shown`` by the server,
    ``proven`` by a written row, ``single`` where one replica leaves nothing to tell, ``embedded``.
    """

    replicas: tuple[AdmittedReplica, ...]
    internal_replication: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaExcluded(Event):
    """A person took a replica out of the inventory. It comes back only by being admitted again."""

    replica: str
    reviewed_by: str
    reason: str
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRevoked(Event):
    """A person took every replica out of the inventory: nothing is published until replicas are admitted again."""

    reviewed_by: str
    reason: str
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRaised(Event):
    """The ledger was moved or restored: the platform answers to this copy at this epoch from now on.

    ``reviewed_by`` is null for a migration, which verified its copy.
    """

    ledger_id: str
    epoch: int
    reason: str
    reviewed_by: str | None
    by: By


# -------------------------------------------------------------------------------------------------- the slots' streams


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryChanged(Event):
    """The platform's inventory is ``replicas`` now; ``admitted`` are those that were not in it before.

    ``live`` is the live table on every replica of the new inventory, empty where the slot has none.
    """

    replicas: tuple[str, ...]
    admitted: tuple[str, ...]
    live: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAdopted(Event):
    """A person let the target be what all replicas show: this table, or none (``generation`` is null then).

    Stored in the slot's and in the platform's stream. Mints a generation that no operation's evidence speaks of.
    """

    target: TargetRef
    generation: str | None
    definition: TableDefinition | None
    rows: int | None
    identities: Mapping[str, TableIdentity]
    reviewed_by: str
    reason: str
    by: By
