"""Whether a cluster replicates by itself, where its servers do not say: by what becomes of one row.

A ``Distributed`` table over a cluster writes a row to one replica when ``internal_replication`` is true, and to every
replica when it is not. So a row is written through one, over an empty table in memory on every replica, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

from ...domain.errors import EngineFailed
from ..clickhouse.quoting import identifier
from ..cluster.session import Endpoint
from ..connections.connection import Connection
from .marker import DATABASE, create_authority
from .refusals import not_admitted, unsupported
from .topology import Topology, endpoint_of, session_on


def internal_replication(connection: Connection, topology: Topology) -> str:
    """How it is known: ``shown``, ``proven`` or ``single``. Raises DponeError: EVIDENCE_UNSUPPORTED if not."""
    if topology.shown_internal is not None:
        if not topology.shown_internal:
            raise _external(topology.cluster)
        return "shown"
    endpoints = [endpoint_of(replica) for replica in topology.replicas]
    if len(endpoints) == 1:
        return "single"
    match _copies(connection, topology.cluster, endpoints):
        case 1:
            return "proven"
        case copies if copies == len(endpoints):
            raise _external(topology.cluster)
        case _:
            raise not_admitted(
                f"Whether the cluster {topology.cluster} replicates by itself could not be established: a row written "
                "through it arrived neither once nor on every replica.",
                "Check that the servers reach each other as the cluster's user, then repeat the same command.",
            )


def _copies(connection: Connection, cluster: str, endpoints: Sequence[Endpoint]) -> int:
    """On how many replicas one row arrives. Leaves nothing behind where the servers still answer."""
    probe = f"probe_{uuid4().hex}"
    spread = f"{probe}_spread"
    try:
        for endpoint in endpoints:
            with session_on(connection, endpoint) as session:
                create_authority(session)
                session.execute(f"CREATE TABLE {DATABASE}.{probe} (one UInt8) ENGINE = Memory")
        with session_on(connection, endpoints[0]) as session:
            session.execute(
                f"CREATE TABLE {DATABASE}.{spread} (one UInt8) "
                f"ENGINE = Distributed({identifier(cluster)}, {DATABASE}, {probe})"
            )
            session.execute(f"INSERT INTO {DATABASE}.{spread} SELECT 1", {"insert_distributed_sync": 1})
        return sum(_count(connection, endpoint, probe) for endpoint in endpoints)
    finally:
        for endpoint in endpoints:
            for name in (spread, probe):
                with suppress(EngineFailed), session_on(connection, endpoint) as session:
                    session.execute(f"DROP TABLE IF EXISTS {DATABASE}.{name}")


def _count(connection: Connection, endpoint: Endpoint, probe: str) -> int:
    with session_on(connection, endpoint) as session:
        return int(session.query(f"SELECT count() AS arrived FROM {DATABASE}.{probe}")[0]["arrived"])


def _external(cluster: str) -> Exception:
    return unsupported(
        f"The cluster {cluster} does not replicate by itself: internal_replication is not true, so a write through it "
        "goes to every replica.",
        "Set internal_replication to true in the servers' configuration of that cluster.",
    )
