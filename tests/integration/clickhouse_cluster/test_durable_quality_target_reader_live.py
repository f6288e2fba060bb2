"""The bounded reader on a live cluster: rows that repeat with NULLs in them, and a table without any.

Always against the cluster that the tests start themselves, where its servers are installed. Against any other one with
``DPONE_RUN_CLICKHOUSE_TARGET_READER=1`` and

* ``DPONE_CONN_REPLAY_TARGET_HOST`` and ``…_PORT``, ``…_USERNAME``, ``…_PASSWORD``, ``…_SECURE``, ``…_CA_FILE``: one
  replica, and a user who may create and drop a database there and on the others;
* ``DPONE_TARGET_READER_CLUSTER``: the cluster's name in ``system.clusters`` (default ``replay_cluster``). It has one
  shard; its hosts are reached under the names and ports that it lists, and each has a macro ``{replica}``.

It creates a database of a unique name on every replica, with replicated tables under a Keeper path of their own, and
drops it in the end. Nothing else is touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest

from dpone.adapters.cluster.identity import read_identities
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection, resolve
from dpone.adapters.reader import ServerReader
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics, Observation
from tests.servers.cluster import Cluster
from tests.servers.sessions import replicated_cluster

__all__ = ["replicated_cluster"]

OPT_IN = "DPONE_RUN_CLICKHOUSE_TARGET_READER"
CLUSTER = "DPONE_TARGET_READER_CLUSTER"
COLUMNS = (Column("id", "UInt8"), Column("amount", "Nullable(Int64)"), Column("label", "Nullable(String)"))
METRICS = Metrics(("amount", "label"), ("id", "amount", "label"), typed_hash=True)
ROWS = [("1", "7", "'a'"), ("1", "7", "'a'"), ("2", "NULL", "'a'"), ("2", "NULL", "'a'"), ("3", "NULL", "NULL")]


@dataclass(frozen=True, slots=True)
class Live:
    """A cluster and the database that is this test's own."""

    connection: Connection
    endpoints: Sequence[Endpoint]
    database: str

    def run(self, statement: str, endpoints: Sequence[Endpoint] | None = None) -> None:
        for endpoint in self.endpoints if endpoints is None else endpoints:
            with ReplicaSession.open(self.connection, endpoint) as session:
                session.execute(statement)

    def create(self, table: str) -> None:
        columns = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
        path = f"/clickhouse/dpone_tests/{self.database}/{table}"
        engine = f"ReplicatedMergeTree('{path}', '{{replica}}') ORDER BY id"
        self.run(f"CREATE TABLE {self.database}.{table} ({columns}) ENGINE = {engine}")

    def fill(self, table: str) -> None:
        types = [column.type for column in COLUMNS]
        rows = (", ".join(f"CAST({v} AS {t})" for v, t in zip(row, types, strict=True)) for row in ROWS)
        inserted = " UNION ALL ".join(f"SELECT {row}" for row in rows)
        self.run(f"INSERT INTO {self.database}.{table} {inserted}", self.endpoints[:1])
        self.run(f"SYSTEM SYNC REPLICA {self.database}.{table}")

    def plan(self, table: str) -> ReadPlan:
        found = {}
        for endpoint in self.endpoints:
            with ReplicaSession.open(self.connection, endpoint) as session:
                read = read_identities(session.query, self.database, f"name = '{table}'", session.dialect)
                found[endpoint.replica] = read[table]
        return ReadPlan(self.database, table, found, COLUMNS, METRICS)


_ASKED = os.environ.get(OPT_IN) == "1"


@pytest.fixture(params=["local", "given"] if _ASKED else ["local"])
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    if request.param == "local":
        cluster: Cluster = request.getfixturevalue("replicated_cluster")
        with _own_database(cluster.environ(), cluster.name) as made:
            yield made
        return
    with _own_database(os.environ, os.environ.get(CLUSTER, "replay_cluster")) as made:
        yield made


@contextmanager
def _own_database(environ: Mapping[str, str], cluster: str) -> Iterator[Live]:
    connection = resolve("replay_target", environ)
    live = Live(connection, _endpoints(connection, cluster), f"dpone_reader_{uuid4().hex[:12]}")
    try:
        live.run(f"CREATE DATABASE {live.database}")
        yield live
    finally:
        live.run(f"DROP DATABASE IF EXISTS {live.database}")


def _endpoints(connection: Connection, cluster: str) -> list[Endpoint]:
    """Every replica of the one shard, by the name that its macro gives it."""
    known = Endpoint("the first replica", connection.host, connection.port or (9440 if connection.secure else 9000))
    with ReplicaSession.open(connection, known) as session:
        hosts = session.query(f"SELECT shard_num, host_name, port FROM system.clusters WHERE cluster = '{cluster}'")
    assert {row["shard_num"] for row in hosts} == {1}, "the cluster is unknown, or has several shards"
    found = []
    for row in hosts:
        endpoint = Endpoint("a replica", row["host_name"], row["port"])
        with ReplicaSession.open(connection, endpoint) as session:
            (macro,) = session.query("SELECT substitution FROM system.macros WHERE macro = 'replica'")
        found.append(replace(endpoint, replica=macro["substitution"]))
    return sorted(found, key=lambda endpoint: endpoint.replica)


def _observed(live: Live, table: str) -> Observation:
    reader = ServerReader(live.connection, live.endpoints)
    try:
        result = reader.observe(live.plan(table))
    finally:
        reader.close()
    assert result.replica == live.endpoints[0].replica
    return result.observation


def test_rows_that_repeat_with_nulls_are_counted_once_each_where_distinct(live: Live) -> None:
    live.create("repeating")
    live.fill("repeating")
    seen = _observed(live, "repeating")
    assert seen.row_count == 5
    assert seen.null_counts == {"amount": 3, "label": 1}
    assert seen.distinct_counts == {"id": 3, "amount": 1, "label": 1}
    assert (seen.typed_hash or "").startswith("v1:5:")


def test_an_empty_table_is_a_result(live: Live) -> None:
    live.create("empty")
    seen = _observed(live, "empty")
    nothing = {"amount": 0, "label": 0}
    assert seen == Observation(0, nothing, {"id": 0, **nothing}, "v1:0:0")
