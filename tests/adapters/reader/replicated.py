"""Tables on the real cluster for a reader to observe, and what the servers are doing meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.cluster.identity import read_identities
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.adapters.reader import server_scan
from dpone.adapters.reader.replica_health import problem
from dpone.adapters.reader.server_request import Access, ServerRequest
from dpone.domain.codec import encode
from dpone.domain.ports import ReadPlan
from dpone.domain.reply import Reply
from dpone.domain.tables import Column, Metrics, TableIdentity
from tests.servers.cluster import PASSWORDS

COLUMNS = (Column("n", "Int64"), Column("t`ext", "Nullable(String)"))
METRICS = Metrics(("t`ext",), ("n", "t`ext"), typed_hash=True)


def connection(user: str = "dpone_reader") -> Connection:
    return Connection("replay_target", "nowhere.invalid", username=user, password=str(getattr(PASSWORDS, user)))


def endpoints(cluster: Cluster) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(replica.name, "127.0.0.1", replica.port) for replica in cluster.replicas)


def create(cluster: Cluster, database: str, table: str, columns: Sequence[Column] = COLUMNS) -> None:
    """On every replica, under a Keeper path of its own."""
    listed = ", ".join(f"`{column.name.replace('`', chr(92) + '`')}` {column.type}" for column in columns)
    engine = f"ReplicatedMergeTree('/tests/{database}/{table}', '{{replica}}') ORDER BY {columns[0].name}"
    for replica in cluster.replicas:
        replica.execute(f"CREATE TABLE {database}.{table} ({listed}) ENGINE = {engine}")


def synchronise(cluster: Cluster, database: str, table: str) -> None:
    for replica in cluster.replicas:
        replica.execute(f"SYSTEM SYNC REPLICA {database}.{table}")


def identities(cluster: Cluster, database: str, table: str) -> dict[str, TableIdentity]:
    found = {}
    for endpoint in endpoints(cluster):
        with ReplicaSession.open(connection(), endpoint) as session:
            read = read_identities(session.query, database, f"name = '{table}'", session.dialect)
            found[endpoint.replica] = read[table]
    return found


def plan(
    cluster: Cluster,
    database: str,
    table: str,
    columns: tuple[Column, ...] = COLUMNS,
    metrics: Metrics = METRICS,
) -> ReadPlan:
    return ReadPlan(database, table, identities(cluster, database, table), columns, metrics)


def outcome(cluster: Cluster, asked: ReadPlan) -> Reply:
    """What a worker would answer; in this process, so that a test can shorten its patience."""
    access = Access.of(connection())
    return server_scan.observe(
        ServerRequest("0" * 32, 20_000, asked, endpoints(cluster), access), time.monotonic() + 20
    )


def scans(cluster: Cluster, database: str) -> int:
    """Statements that count rows of the database's tables at this moment, on the first replica."""
    found = cluster.execute(
        f"SELECT count() FROM system.processes WHERE query LIKE '%FROM `{database}`.%' AND query NOT LIKE '%processes%'"
    )
    return int(found[0][0])


def wait_for_scans(cluster: Cluster, database: str, expected: int, seconds: float) -> bool:
    """Whether so many come to run within the time."""
    deadline = time.monotonic() + seconds
    while scans(cluster, database) != expected:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def told(asked: ReadPlan, replica: str) -> str:
    """The plan for one replica alone, as JSON on one line."""
    return json.dumps(encode(replace(asked, identities={replica: asked.identities[replica]})))


def forget_session(cluster: Cluster, database: str, table: str, replica: str) -> None:
    """Take away the node that lives as long as the replica's session, as its end does some ten seconds later."""
    client = KazooClient(cluster.keeper.hosts)
    client.start(timeout=5)
    try:
        client.delete(f"/tests/{database}/{table}/replicas/{replica}/is_active")
    except NoNodeError:
        return
    finally:
        client.stop()
        client.close()


def wait_well(cluster: Cluster, database: str, table: str, seconds: float = 20) -> None:
    """Wait until every replica replicates the table again."""
    deadline = time.monotonic() + seconds
    for endpoint in endpoints(cluster):
        with ReplicaSession.open(connection(), endpoint) as session:
            while problem(session.query, database, table) is not None:
                assert time.monotonic() < deadline, f"{endpoint.replica} does not come back"
                time.sleep(0.1)
