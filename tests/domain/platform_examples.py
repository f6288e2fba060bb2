"""A platform's life as example events, and what happens to a slot through its owner."""

from __future__ import annotations

from dpone.domain import platform_events as p

from .examples import AT, BY, DEFINITION, KEY, OTHER_GENERATION, RECEIPT, identities


def replica(name: str, number: int = 1) -> p.AdmittedReplica:
    """A server of a cluster of one shard."""
    return p.AdmittedReplica(
        name=name,
        host="127.0.0.1",
        port=9000 + number,
        version="18.16.1",
        macros={"replica": name, "shard": "01"},
        shard_number=1,
        replica_number=number,
    )


def provisioned(databases: tuple[str, ...] = ("sales",), kind: str = "cluster") -> p.PlatformProvisioned:
    return p.PlatformProvisioned(
        at=AT,
        platform_id="platform-1",
        kind=kind,
        ledger_id=RECEIPT,
        epoch=1,
        cluster="replay_cluster" if kind == "cluster" else None,
        databases=databases,
    )


def attested(*names: str, czxid: str = "4294967301") -> p.KeeperAttested:
    seen = dict.fromkeys(names, "4294967301")
    return p.KeeperAttested(at=AT, path="/attest/1", czxid=czxid, seen=seen, keeper=("127.0.0.1:2181",), by=BY)


def inventory(*names: str) -> p.InventoryAdmitted:
    replicas = tuple(replica(name, number) for number, name in enumerate(names, start=1))
    return p.InventoryAdmitted(at=AT, replicas=replicas, internal_replication="proven")


def excluded(name: str) -> p.ReplicaExcluded:
    return p.ReplicaExcluded(at=AT, replica=name, reviewed_by="Ada", reason="its disk is gone", by=BY)


def revoked() -> p.InventoryRevoked:
    return p.InventoryRevoked(at=AT, reviewed_by="Ada", reason="the cluster is being rebuilt", by=BY)


def epoch_raised(epoch: int = 2) -> p.EpochRaised:
    return p.EpochRaised(at=AT, ledger_id=RECEIPT, epoch=epoch, reason="the ledger was moved", reviewed_by=None, by=BY)


def databases_added(*databases: str) -> p.DatabasesAdded:
    return p.DatabasesAdded(at=AT, databases=databases, by=BY)


def inventory_changed(*names: str, admitted: tuple[str, ...] = (), live: str | None = "new") -> p.InventoryChanged:
    shown = identities(live, names) if live is not None else {}
    return p.InventoryChanged(at=AT, replicas=names, admitted=admitted, live=shown)


def adopted(*names: str, generation: str | None = OTHER_GENERATION) -> p.TableAdopted:
    """A table that every named replica shows; with ``generation`` None, that there is none."""
    return p.TableAdopted(
        at=AT,
        target=KEY.target,
        generation=generation,
        definition=DEFINITION if generation is not None else None,
        rows=7 if generation is not None else None,
        identities=identities("adopted", names) if generation is not None else {},
        reviewed_by="Ada",
        reason="it was altered by hand",
        by=BY,
    )


PROVISIONED = (provisioned(),)
ATTESTED = (*PROVISIONED, attested("replica_1", "replica_2", "replica_3"))
ADMITTED = (*ATTESTED, inventory("replica_1", "replica_2"))
