"""``platform admit``: the cluster as it is now becomes the inventory, once a person has seen it.

The slots' versions are read before anything is looked at, and every slot's stream takes part in the append: a claim in
between makes it fail, and the same command is repeated. A replica that comes is prepared first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...domain import platform_events as p
from ...domain.identity import platform_stream
from ...domain.platform import Platform
from ...domain.ports import StreamAppend
from ..clickhouse.quoting import literal
from ..cluster.platform import ReplicatedPlatform
from .asked import Answer, Asked, OpenLedger
from .belonging import disagreements, first_markers, opened, platform_of
from .marker import Marker, write_marker
from .memory import Remembered, all_slots, inventory_changes, require_free
from .preparing import mismatches, prepare
from .provision import read_all_markers
from .refusals import not_admitted, together
from .replication import internal_replication
from .topology import Topology, discover, endpoint_of, session_on

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

_ENGINES = frozenset({"Ordinary", "Atomic"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be admitted. ``new`` are the replicas that are not in the inventory now."""

    cluster: str
    replicas: tuple[p.AdmittedReplica, ...]
    new: tuple[str, ...]
    internal_replication: str
    targets: tuple[str, ...]


Confirm = Callable[[Plan], bool]
"""Shows a person the plan and asks."""


def admit(asked: Asked, open_ledger: OpenLedger, confirm: Confirm) -> Answer:
    """Admit the cluster as it is. Raises DponeError: NOT_ADMITTED, saying which condition is not met; TARGET_BLOCKED;
    what looking at servers raises."""
    markers = first_markers(asked)
    topology = discover(asked.connection, asked.cluster)
    with opened(open_ledger) as ledger:
        platform, marker = platform_of(ledger, markers)
        _check(asked, platform, marker, topology)
        if platform.replicas == topology.replicas:
            return Answer((), _result(platform.inventory, topology))
        return _admit(asked, ledger, platform, marker, topology, confirm)


def _admit(
    asked: Asked, ledger: EventLedger, platform: Platform, marker: Marker, topology: Topology, confirm: Confirm
) -> Answer:
    new = tuple(name for name in topology.names if name not in platform.admitted)
    remembered = all_slots(ledger, platform.platform_id)
    if new:
        for known in remembered:
            require_free(ledger, known.slot)
    how = internal_replication(asked.connection, topology)
    targets = tuple(str(known.slot.target) for known in remembered if known.slot.live is not None)
    if not confirm(Plan(asked.cluster, topology.replicas, new, how, targets)):
        raise not_admitted("Nobody said yes, so nothing was admitted.", "Repeat the same command, or add --yes.")
    changes = _prepare(asked, platform, marker, topology, new, remembered)
    admitted = p.InventoryAdmitted(at=asked.now(), replicas=topology.replicas, internal_replication=how)
    appends = [StreamAppend(platform_stream(platform.platform_id), platform.version, (admitted,))]
    if new:
        appends += inventory_changes(remembered, topology.names, new, asked.now())
    ledger.append(appends)
    changes += [f"Replica {name} is admitted." for name in new]
    changes += [] if new else ["What the servers say of themselves is recorded anew."]
    return Answer(tuple(changes), _result(new, topology))


def _prepare(
    asked: Asked,
    platform: Platform,
    marker: Marker,
    topology: Topology,
    new: Sequence[str],
    remembered: Sequence[Remembered],
) -> list[str]:
    """Marker and live tables on every replica that comes; then all replicas are looked at."""
    changes = []
    for replica in topology.replicas:
        if replica.name in new:
            with session_on(asked.connection, endpoint_of(replica)) as session:
                if write_marker(session, marker, asked.now()):
                    changes.append(f"The marker was written to replica {replica.name} and read back.")
    endpoints = [endpoint_of(replica) for replica in topology.replicas]
    target_platform = ReplicatedPlatform(asked.connection, endpoints, asked.cluster, platform.platform_id)
    changes += prepare(target_platform, remembered, new)
    wrong = [one for known in remembered for one in mismatches(target_platform, known.slot, new)]
    if wrong:
        raise not_admitted(
            "A replica that was prepared does not show what the others hold.",
            "Repeat the same command; where that does not help: dpone platform status",
            wrong,
        )
    return changes


def _check(asked: Asked, platform: Platform, marker: Marker, topology: Topology) -> None:
    """Everything that can be told without changing anything."""
    blind = [name for name in topology.names if name not in platform.attested]
    if blind:
        raise not_admitted(
            f"These replicas were not attested to share one Keeper: {together(blind)}.",
            f"dpone platform attest --connection {asked.connection.reference} --cluster {asked.cluster} --keeper …",
        )
    gone = [name for name in platform.inventory if name not in topology.names]
    if gone:
        raise not_admitted(
            f"The cluster no longer has these admitted replicas: {together(gone)}.",
            f"dpone platform exclude {gone[0]} --connection {asked.connection.reference} --cluster {asked.cluster} "
            "--reviewed-by NAME --reason TEXT",
        )
    found = read_all_markers(asked, topology)
    theirs = {name: markers for name, markers in found.items() if name in platform.admitted}
    wrong = disagreements(platform, marker, theirs)
    if wrong:
        raise not_admitted("Admitted replicas do not bear the platform's marker.", "dpone platform status", wrong)
    _check_databases(asked, platform, topology)


def _check_databases(asked: Asked, platform: Platform, topology: Topology) -> None:
    """One engine on every replica for each of the platform's databases that exists, and one that a swap works in."""
    engines: dict[str, dict[str, str]] = {}
    for replica in topology.replicas:
        with session_on(asked.connection, endpoint_of(replica)) as session:
            for name in platform.databases:
                rows = session.query(f"SELECT engine FROM system.databases WHERE name = {literal(name)}")
                if rows:
                    engines.setdefault(name, {})[replica.name] = rows[0]["engine"]
    for name, by_replica in engines.items():
        if len(set(by_replica.values())) > 1:
            raise not_admitted(
                f"The database {name} has different engines on different replicas.",
                "Let it have the same engine everywhere, then repeat the same command.",
            )
        engine = next(iter(by_replica.values()))
        if engine not in _ENGINES:
            raise not_admitted(
                f"The database {name} has the engine {engine}; tables are published in Ordinary and Atomic ones only.",
                "Use another database.",
            )


def _result(new: Sequence[str], topology: Topology) -> dict[str, Any]:
    return {
        "cluster": topology.cluster,
        "replicas": [shown(replica) for replica in topology.replicas],
        "new": list(new),
    }


def shown(replica: p.AdmittedReplica) -> Mapping[str, Any]:
    """A replica as documents show it: no host, no port."""
    return {"replica": replica.name, "version": replica.version, "macros": dict(replica.macros)}
