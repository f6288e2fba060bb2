"""What the servers of a cluster say of themselves: hosts and ports from ``system.clusters``, names from their macros.

A replica's name is its ``{replica}`` macro. The connection's server is asked who the others are; each of them is then
reached directly, with the same credentials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ...domain.platform_events import AdmittedReplica
from ..clickhouse.quoting import literal
from ..cluster.session import Endpoint, ReplicaSession
from ..connections.connection import Connection
from .refusals import invalid, not_admitted, together, unsupported

NATIVE_PORT: Final = 9000
SECURE_PORT: Final = 9440
_NAME_CHARACTERS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Member:
    """One row of ``system.clusters``: where a replica answers, before its name is known."""

    host: str
    port: int
    shard_number: int
    replica_number: int


@dataclass(frozen=True, slots=True)
class Topology:
    """The cluster now. ``shown_internal`` is what the server says of internal replication, None: it says nothing."""

    cluster: str
    replicas: tuple[AdmittedReplica, ...]
    shown_internal: bool | None

    @property
    def names(self) -> tuple[str, ...]:
        """The replicas' names, sorted."""
        return tuple(replica.name for replica in self.replicas)


def endpoint_of(replica: AdmittedReplica) -> Endpoint:
    """Where an admitted replica answers. ValueError for the embedded engine, which answers nowhere."""
    if replica.host is None or replica.port is None:
        raise ValueError(f"{replica.name} is not a server")
    return Endpoint(replica.name, replica.host, replica.port)


def first_server(connection: Connection) -> Endpoint:
    """The server that the connection itself names."""
    port = connection.port or (SECURE_PORT if connection.secure else NATIVE_PORT)
    return Endpoint(f"of the connection {connection.reference!r}", connection.host, port)


@contextmanager
def session_on(connection: Connection, endpoint: Endpoint, reply_seconds: float = 30.0) -> Iterator[ReplicaSession]:
    """A session for a few statements."""
    with ReplicaSession.open(connection, endpoint, reply_seconds=reply_seconds) as session:
        yield session


def members(connection: Connection, cluster: str) -> tuple[tuple[Member, ...], bool | None]:
    """The cluster's members as the connection's server knows them, and what it shows of internal replication.

    Raises DponeError: REQUEST_INVALID for a cluster that it does not know, EVIDENCE_UNSUPPORTED for several shards.
    """
    with session_on(connection, first_server(connection)) as session:
        shows = bool(_shows_internal(session))
        internal = "internal_replication" if shows else "0"
        rows = session.query(
            "SELECT cluster, toUInt32(shard_num) AS shard, toUInt32(replica_num) AS replica, host_name AS host, "
            f"toUInt32(port) AS port, toUInt8({internal}) AS internal FROM system.clusters ORDER BY shard, replica"
        )
    mine = [row for row in rows if row["cluster"] == cluster]
    if not mine:
        known = together(sorted({row["cluster"] for row in rows})[:20])
        raise invalid(
            f"The server of the connection {connection.reference!r} knows no cluster {cluster!r}; it knows: {known}.",
            "Name one of these with --cluster.",
        )
    shards = len({row["shard"] for row in mine})
    if shards != 1:
        raise unsupported(
            f"The cluster {cluster} has {shards} shards; only clusters of one shard can be published to.",
            "Use a cluster with one shard whose replicas hold the same rows.",
        )
    found = tuple(Member(row["host"], row["port"], row["shard"], row["replica"]) for row in mine)
    return found, all(row["internal"] == 1 for row in mine) if shows else None


def discover(connection: Connection, cluster: str) -> Topology:
    """The whole cluster, every member reached and asked for its name, macros and version.

    Raises DponeError: what :func:`members` raises; NOT_ADMITTED for servers that cannot be told apart by their macros;
    REPLICA_UNREACHABLE.
    """
    found, internal = members(connection, cluster)
    return Topology(cluster, described(connection, found), internal)


def described(connection: Connection, found: Sequence[Member]) -> tuple[AdmittedReplica, ...]:
    """These members with names, macros and versions, sorted by name. Raises DponeError."""
    replicas = sorted((_described(connection, member) for member in found), key=lambda replica: replica.name)
    names = [replica.name for replica in replicas]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise not_admitted(
            f"Several servers of the cluster call themselves {together(twice)}: their {{replica}} macros are equal.",
            "Give each server a {replica} macro of its own, then repeat the same command.",
        )
    if len({replica.macros.get("shard") for replica in replicas}) > 1:
        raise not_admitted(
            "The servers of the cluster differ in their {shard} macro, though the cluster has one shard.",
            "Give all servers the same {shard} macro, then repeat the same command.",
        )
    return tuple(replicas)


def _described(connection: Connection, member: Member) -> AdmittedReplica:
    nameless = Endpoint(f"number {member.replica_number} of the cluster", member.host, member.port)
    with session_on(connection, nameless) as session:
        macros = read_macros(session)
        version = str(session.query("SELECT version() AS version")[0]["version"])
    name = macros.get("replica", "")
    if not name or len(name) > _NAME_CHARACTERS_MAX or not name.isprintable():
        raise not_admitted(
            f"Server number {member.replica_number} of the cluster has no usable {{replica}} macro.",
            "Give each server a {replica} macro of its own, then repeat the same command.",
        )
    return AdmittedReplica(
        name=name,
        host=member.host,
        port=member.port,
        version=version,
        macros=macros,
        shard_number=member.shard_number,
        replica_number=member.replica_number,
    )


def read_macros(session: ReplicaSession) -> Mapping[str, str]:
    """The server's macros by name."""
    rows = session.query("SELECT macro, substitution FROM system.macros ORDER BY macro")
    return {row["macro"]: row["substitution"] for row in rows}


def _shows_internal(session: ReplicaSession) -> int:
    rows = session.query(
        "SELECT count() AS shown FROM system.columns WHERE database = 'system' AND table = 'clusters' "
        f"AND name = {literal('internal_replication')}"
    )
    return int(rows[0]["shown"])
