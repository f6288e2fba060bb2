"""The platform: which servers hold targets, and which ledger they answer to.

``evolve`` folds one event; an event that the state does not allow raises IllegalTransition, so that verifying a
ledger is nothing but folding it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import events as e
from . import platform_events as p
from .errors import IllegalTransition

CLUSTER = "cluster"
EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class Platform:
    """State of one platform's stream at ``version`` (0: not provisioned).

    ``admitted`` are the replicas that may be used, by name; ``excluded`` those that were taken out since. ``attested``
    are the replicas that the last attestation saw on one Keeper.
    """

    version: int = 0
    platform_id: str = ""
    kind: str = ""
    ledger_id: str = ""
    epoch: int = 0
    cluster: str | None = None
    databases: tuple[str, ...] = ()
    attested: frozenset[str] = frozenset()
    admitted: Mapping[str, p.AdmittedReplica] = field(default_factory=dict)
    excluded: Mapping[str, p.AdmittedReplica] = field(default_factory=dict)
    revoked: bool = False

    @property
    def inventory(self) -> tuple[str, ...]:
        """The admitted replicas minus those excluded since, sorted by name."""
        return tuple(sorted(self.admitted))

    @property
    def replicas(self) -> tuple[p.AdmittedReplica, ...]:
        """The inventory's records, sorted by name."""
        return tuple(self.admitted[name] for name in self.inventory)

    def covers(self, database: str) -> bool:
        """Whether targets in this database are this platform's."""
        return not self.databases or database in self.databases


def overlap(mine: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether two platforms' databases have one in common; an empty list means all databases."""
    return not mine or not others or not set(mine).isdisjoint(others)


def evolve(platform: Platform, event: e.Event) -> Platform:
    """The platform after ``event``. Raises IllegalTransition."""
    return replace(_evolve(platform, event), version=platform.version + 1)


def _evolve(platform: Platform, event: e.Event) -> Platform:
    if platform.version == 0 and not isinstance(event, p.PlatformProvisioned):
        raise _illegal(event, "the platform was never provisioned")
    match event:
        case p.PlatformProvisioned():
            return _provision(platform, event)
        case p.DatabasesAdded():
            more = set(event.databases) > set(platform.databases) > set()
            _demand(more, event, "it adds no database to a list of them")
            return replace(platform, databases=tuple(sorted(event.databases)))
        case p.KeeperAttested():
            _demand(set(event.seen.values()) == {event.czxid}, event, "the replicas did not see the same node")
            return replace(platform, attested=frozenset(event.seen))
        case p.InventoryAdmitted():
            return _admit(platform, event)
        case p.ReplicaExcluded():
            return _exclude(platform, event)
        case p.InventoryRevoked():
            _demand(not platform.revoked, event, "it is revoked already")
            return replace(platform, admitted={}, excluded={**platform.excluded, **platform.admitted}, revoked=True)
        case p.EpochRaised():
            _demand(event.epoch > platform.epoch, event, "the epoch is not a higher one")
            return replace(platform, ledger_id=event.ledger_id, epoch=event.epoch)
        case p.TableAdopted():
            _demand(event.target.platform_id == platform.platform_id, event, "the table is another platform's")
            _demand(platform.covers(event.target.database), event, "the database is another platform's")
            _demand(bool(platform.admitted), event, "no replica is admitted")
            seen = tuple(sorted(event.identities)) in ((), platform.inventory)
            _demand(seen, event, "it does not speak of every admitted replica")
            return platform
        case _:
            raise _illegal(event, "it does not belong to a platform")


def _provision(platform: Platform, event: p.PlatformProvisioned) -> Platform:
    _demand(platform.version == 0, event, "the platform is provisioned already")
    return Platform(
        platform_id=event.platform_id,
        kind=event.kind,
        ledger_id=event.ledger_id,
        epoch=event.epoch,
        cluster=event.cluster,
        databases=tuple(sorted(event.databases)),
    )


def _admit(platform: Platform, event: p.InventoryAdmitted) -> Platform:
    admitted = {replica.name: replica for replica in event.replicas}
    _demand(bool(admitted), event, "an inventory is never empty")
    _demand(len(admitted) == len(event.replicas), event, "two replicas have one name")
    if platform.kind == CLUSTER:
        _demand(admitted.keys() <= platform.attested, event, "a replica was not attested")
        _demand(len({(r.host, r.port) for r in event.replicas}) == len(admitted), event, "two replicas are one server")
    _demand(platform.admitted.keys() <= admitted.keys(), event, "a replica leaves only by being excluded")
    excluded = {name: replica for name, replica in platform.excluded.items() if name not in admitted}
    return replace(platform, admitted=admitted, excluded=excluded, revoked=False)


def _exclude(platform: Platform, event: p.ReplicaExcluded) -> Platform:
    _demand(event.replica in platform.admitted, event, "this replica is not admitted")
    _demand(len(platform.admitted) > 1, event, "it is the last replica")
    left = {name: replica for name, replica in platform.admitted.items() if name != event.replica}
    gone = {**platform.excluded, event.replica: platform.admitted[event.replica]}
    return replace(platform, admitted=left, excluded=gone)


def _demand(condition: bool, event: e.Event, why: str) -> None:
    if not condition:
        raise _illegal(event, why)


def _illegal(event: e.Event, why: str) -> IllegalTransition:
    return IllegalTransition(f"{type(event).__name__} is not allowed here: {why}.")
