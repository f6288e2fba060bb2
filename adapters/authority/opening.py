"""What every run on a cluster does first: ledger, markers and servers must still be what was admitted.

The ledger is never created here. Whatever differs is named, and nothing is read or changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...domain.platform import Platform
from ...domain.platform_events import AdmittedReplica
from ..cluster.abreast import abreast
from ..cluster.session import Endpoint
from ..connections.connection import Connection
from ..runtime.settings import Settings
from .asked import Asked
from .belonging import disagreements, first_markers, opened, platform_of
from .marker import Marker, read_markers
from .refusals import not_admitted, not_shared, together
from .topology import Member, endpoint_of, members, read_macros, session_on

if TYPE_CHECKING:
    from ...ledger.store import EventLedger


@dataclass(frozen=True, slots=True)
class OpenedCluster:
    """An admitted cluster. ``endpoints`` are the inventory's, sorted by replica; the caller closes the ledger."""

    ledger: EventLedger
    platform_id: str
    endpoints: tuple[Endpoint, ...]
    cluster: str
    keeper_root: str


def open_cluster(settings: Settings, connection: Connection, cluster: str, database: str) -> OpenedCluster:
    """Open the ledger and see that the cluster is as it was admitted, for targets in ``database``.

    Raises DponeError: LEDGER_NOT_SHARED; NOT_ADMITTED (never provisioned, never admitted, or drifted, naming what);
    LEDGER_CORRUPT for another, older or absent ledger; REPLICA_UNREACHABLE; what opening a ledger raises.
    """
    asked = Asked(connection, cluster, settings.by, lambda: "")
    require_shared(settings.ledger_url)
    markers = _covering(asked, first_markers(asked), database)
    ledger = opened(lambda create: open_shared(settings, create))
    try:
        platform, marker = platform_of(ledger, markers)
        found = drift(connection, platform, marker)
        if found:
            raise _drifted(asked, platform, found)
    except BaseException:
        ledger.close()
        raise
    return OpenedCluster(
        ledger,
        platform.platform_id,
        tuple(endpoint_of(replica) for replica in platform.replicas),
        cluster,
        f"/clickhouse/dpone/{platform.platform_id}",
    )


def _covering(asked: Asked, markers: tuple[Marker, ...], database: str) -> tuple[Marker, ...]:
    """The markers of platforms that own the database. Raises DponeError (NOT_ADMITTED): none does."""
    covering = tuple(marker for marker in markers if not marker.databases or database in marker.databases)
    if covering:
        return covering
    owned = sorted({name for marker in markers for name in marker.databases})
    raise not_admitted(
        f"The cluster {asked.cluster} is provisioned for {together(owned)}, and not for the database {database}.",
        f"dpone platform provision --connection {asked.connection.reference} --cluster {asked.cluster} "
        f"--database {database}",
    )


def require_shared(url: str) -> None:
    """Raise DponeError (LEDGER_NOT_SHARED) for a ledger that other machines cannot reach."""
    if url.startswith("sqlite:"):
        raise not_shared()


def open_shared(settings: Settings, create: bool) -> EventLedger:
    """The ledger of the settings, its connection (if it has one) bound by their providers. Raises LedgerFailed."""
    from ...ledger.store import open_ledger
    from ..connections.sql import connect_by

    return open_ledger(settings.ledger_url, create=create, connect=connect_by(settings))


def drift(connection: Connection, platform: Platform, marker: Marker) -> tuple[str, ...]:
    """What differs between the platform as admitted and its servers now; one sentence each. Raises EngineFailed."""
    if not platform.admitted:
        return ("No replica is admitted.",)
    found, internal = members(connection, platform.cluster or "")
    said = list(_strangers(platform, found))
    if internal is False:
        said.append("The cluster no longer replicates by itself (internal_replication).")

    def look(endpoint: Endpoint, replica: AdmittedReplica) -> tuple[tuple[Marker, ...], str | None]:
        with session_on(connection, endpoint) as session:
            return read_markers(session), _renamed(replica, read_macros(session).get("replica", ""))

    answers = abreast({one.name: partial(look, endpoint_of(one), one) for one in platform.replicas}).all()
    said += [changed for _, changed in answers.values() if changed is not None]
    return (*said, *disagreements(platform, marker, {name: markers for name, (markers, _) in answers.items()}))


def _strangers(platform: Platform, found: Sequence[Member]) -> list[str]:
    """Servers that the cluster has and the platform does not know, and the other way round."""
    places = {(member.host, member.port): member.replica_number for member in found}
    known = {(one.host, one.port) for one in (*platform.admitted.values(), *platform.excluded.values())}
    said = [
        f"Server number {number} of the cluster is not admitted."
        for place, number in places.items()
        if place not in known
    ]
    return said + [
        f"The cluster no longer has the admitted replica {one.name}, or has it elsewhere."
        for one in platform.replicas
        if (one.host, one.port) not in places
    ]


def _renamed(replica: AdmittedReplica, now: str) -> str | None:
    return None if now == replica.name else f"The server admitted as {replica.name} calls itself something else now."


def _drifted(asked: Asked, platform: Platform, found: tuple[str, ...]) -> Exception:
    words = f"--connection {asked.connection.reference} --cluster {asked.cluster}"
    never = not platform.admitted and not platform.excluded
    return not_admitted(
        f"The cluster {asked.cluster} is not as it was admitted: {found[0]}",
        f"dpone platform {'attest' if never else 'status'} {words}",
        found,
    )
