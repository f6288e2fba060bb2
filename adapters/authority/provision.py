"""``platform provision``: the platform's id and its ledger's stand on every replica, and are read back from each.

The id is minted from what is being provisioned (ledger, cluster, databases, servers, and how many platforms came
before), so that two processes that provision at once, and a second attempt after a crash, mint the same one. The
markers come first, the event last: a marker without an event is taken up, an event without a marker cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from ...domain import platform_events as p
from ...domain.errors import AppendConflict, DponeError, LedgerMissing
from ...domain.identity import platform_stream
from ...domain.platform import CLUSTER, Platform, overlap
from ...domain.ports import StreamAppend
from .asked import Answer, Asked, OpenLedger
from .marker import DATABASE, Marker, read_markers, write_marker
from .memory import all_platforms, read_platform
from .refusals import invalid, not_admitted, other_ledger, together
from .topology import Topology, discover, endpoint_of, session_on

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

_RESERVED = frozenset({"system", "information_schema", "INFORMATION_SCHEMA", DATABASE})
_NAMESPACE = uuid5(NAMESPACE_URL, "urn:dpone-replay:platform")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was on the replicas before anything was done."""

    topology: Topology
    markers: frozenset[Marker]

    def overlapping(self, databases: tuple[str, ...]) -> tuple[Marker, ...]:
        """Every marker, of whichever replica, whose platform has a database in common with these."""
        return tuple(marker for marker in self.markers if overlap(databases, marker.databases))


def provision(asked: Asked, open_ledger: OpenLedger, databases: tuple[str, ...]) -> Answer:
    """Provision the cluster, or find that it is. ``databases`` empty: all, or what it was provisioned with before.

    Raises DponeError: REQUEST_INVALID; EVIDENCE_UNSUPPORTED for several shards; NOT_ADMITTED for databases that belong
    to another platform; LEDGER_CORRUPT for a cluster that belongs to another ledger; what opening a ledger raises.
    """
    _check_names(databases)
    topology = discover(asked.connection, asked.cluster)
    seen = _Seen(topology, frozenset(m for found in read_all_markers(asked, topology).values() for m in found))
    taken = seen.overlapping(databases)
    try:
        ledger = open_ledger(not taken)
    except LedgerMissing as error:
        if not taken:
            raise
        raise other_ledger(
            "The cluster's servers answer to a ledger already, and the one that was named does not exist."
        ) from error
    with ledger:
        return _provision(asked, ledger, seen, tuple(sorted(set(databases))))


def read_all_markers(asked: Asked, topology: Topology) -> dict[str, tuple[Marker, ...]]:
    """The markers of every replica. Raises EngineFailed."""
    found = {}
    for replica in topology.replicas:
        with session_on(asked.connection, endpoint_of(replica)) as session:
            found[replica.name] = read_markers(session)
    return found


def _provision(asked: Asked, ledger: EventLedger, seen: _Seen, databases: tuple[str, ...]) -> Answer:
    known = _known(ledger, seen)
    marker = _mint(asked, ledger, seen, databases) if known is None else _widened(known, databases)
    for other in seen.overlapping(marker.databases):
        if other.platform_id != marker.platform_id and not _is_given_up(ledger, other):
            raise _taken(asked, ledger, other)
    written = _write(asked, seen.topology, marker)
    changes = [f"The marker was written to replica {name} and read back." for name in written]
    if _record(asked, ledger, marker):
        changes.append("The platform and its databases are recorded in the ledger.")
    return Answer(tuple(changes), _result(read_platform(ledger, marker.platform_id), seen.topology))


def _is_given_up(ledger: EventLedger, other: Marker) -> bool:
    """A platform of this very ledger that a person revoked: under another cluster's name its databases are free."""
    return other.ledger_id == ledger.ledger_id and read_platform(ledger, other.platform_id).revoked


def _known(ledger: EventLedger, seen: _Seen) -> Marker | None:
    """The marker of this ledger's platform here, if there is one. Raises LedgerFailed for another epoch's."""
    mine = [m for m in seen.markers if m.ledger_id == ledger.ledger_id and m.cluster == seen.topology.cluster]
    if any(marker.epoch != ledger.epoch for marker in mine):
        raise other_ledger("The cluster belongs to another epoch of this ledger than the one that was opened.")
    return max(mine, key=lambda marker: marker.revision, default=None)


def _mint(asked: Asked, ledger: EventLedger, seen: _Seen, databases: tuple[str, ...]) -> Marker:
    here = {(replica.host, replica.port) for replica in seen.topology.replicas}
    before = [known for known in all_platforms(ledger) if known.cluster == asked.cluster]
    for known in before:
        if not known.revoked and overlap(databases, known.databases) and _shares(known, here):
            raise not_admitted(
                f"This ledger knows the cluster {asked.cluster} already, with {_named(known.databases)}, but no server "
                "of it bears the marker: it was emptied, or put back to an earlier state.",
                f"If its tables are gone: dpone platform revoke --connection {asked.connection.reference} "
                f"--cluster {asked.cluster} --reviewed-by NAME --reason TEXT, then repeat the same command.",
            )
    places = sorted(f"{host}:{port}" for host, port in here)
    words = (ledger.ledger_id, asked.cluster, str(len(before)), *places, "", *databases)
    return Marker(str(uuid5(_NAMESPACE, "\n".join(words))), asked.cluster, ledger.ledger_id, ledger.epoch, databases)


def _shares(known: Platform, here: set[tuple[str | None, int | None]]) -> bool:
    records = (*known.admitted.values(), *known.excluded.values())
    return not records or any((record.host, record.port) in here for record in records)


def _widened(marker: Marker, databases: tuple[str, ...]) -> Marker:
    """The marker with the databases that were asked for beside those it has."""
    if not marker.databases or set(databases) <= set(marker.databases):
        return marker
    more = tuple(sorted({*marker.databases, *databases}))
    return replace(marker, databases=more, revision=marker.revision + 1)


def _write(asked: Asked, topology: Topology, marker: Marker) -> list[str]:
    written = []
    for replica in topology.replicas:
        with session_on(asked.connection, endpoint_of(replica)) as session:
            if write_marker(session, marker, asked.now()):
                written.append(replica.name)
    return written


def _record(asked: Asked, ledger: EventLedger, marker: Marker) -> bool:
    """Append what the ledger does not know yet. False: it knew."""
    platform = read_platform(ledger, marker.platform_id)
    if platform.version and platform.databases == marker.databases:
        return False
    event: p.PlatformProvisioned | p.DatabasesAdded
    if platform.version:
        event = p.DatabasesAdded(at=asked.now(), databases=marker.databases, by=asked.by)
    else:
        event = p.PlatformProvisioned(
            at=asked.now(),
            platform_id=marker.platform_id,
            kind=CLUSTER,
            ledger_id=marker.ledger_id,
            epoch=marker.epoch,
            cluster=marker.cluster,
            databases=marker.databases,
        )
    try:
        ledger.append([StreamAppend(platform_stream(marker.platform_id), platform.version, (event,))])
    except AppendConflict:
        if read_platform(ledger, marker.platform_id).databases != marker.databases:
            raise
        return False  # another process provisioned the same
    return True


def _result(platform: Platform, topology: Topology) -> dict[str, Any]:
    return {
        "platform_id": platform.platform_id,
        "cluster": platform.cluster,
        "databases": list(platform.databases) or "all",
        "ledger_id": platform.ledger_id,
        "epoch": platform.epoch,
        "replicas": list(topology.names),
    }


def _check_names(databases: Iterable[str]) -> None:
    for name in databases:
        if not name or name in _RESERVED:
            raise invalid(f"The database {name!r} cannot hold targets.", "Name other databases with --database.")


def _named(databases: tuple[str, ...]) -> str:
    return f"the databases {together(databases)}" if databases else "all databases"


def _taken(asked: Asked, ledger: EventLedger, other: Marker) -> DponeError:
    ours = other.ledger_id == ledger.ledger_id
    whose = "this ledger" if ours else "another ledger"
    give_up = (
        f"Give each platform databases of its own with --database, or give that one up: dpone platform revoke "
        f"--connection {asked.connection.reference} --cluster {other.cluster} --reviewed-by NAME --reason TEXT"
    )
    return not_admitted(
        f"The cluster's servers are taken already, with {_named(other.databases)}, by {whose}'s platform on the "
        f"cluster {other.cluster}.",
        give_up
        if ours
        else "Use the ledger that they answer to, or give each platform databases of its own with --database.",
    )
