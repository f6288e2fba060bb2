"""Real workers on a real replicated cluster."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.clickhouse import observation_sql
from dpone.adapters.clickhouse.dialects import Dialect
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.adapters.reader import ServerReader, server_scan
from dpone.adapters.reader.server_scan import _opened
from dpone.domain.errors import EngineFailed, ReaderFailed
from dpone.domain.ports import ReadPlan
from dpone.domain.reply import Outcome
from dpone.domain.tables import Metrics, Observation
from tests.servers.cluster import PASSWORDS
from tests.servers.sessions import breakable_cluster, cluster_database, replicated_cluster

from . import replicated

__all__ = ["breakable_cluster", "cluster_database", "replicated_cluster"]


@pytest.fixture
def plan(replicated_cluster: Cluster, cluster_database: str) -> ReadPlan:
    """``t``: 1,000 rows, every one of them twice, a tenth of the texts NULL."""
    replicated.create(replicated_cluster, cluster_database, "t")
    rows = [(i // 2, None if i // 2 % 10 == 0 else f"{i // 2 % 7}") for i in range(1000)]
    replicated_cluster.execute(f"INSERT INTO {cluster_database}.t VALUES", rows)
    replicated.synchronise(replicated_cluster, cluster_database, "t")
    return replicated.plan(replicated_cluster, cluster_database, "t")


@pytest.fixture
def reader(replicated_cluster: Cluster) -> Iterator[ServerReader]:
    made = ServerReader(replicated.connection(), replicated.endpoints(replicated_cluster))
    yield made
    made.close()


@contextmanager
def failing(cluster: Cluster, what: str, *, fits: bool = True) -> Iterator[None]:
    """No observation, for this reason, from a worker that is gone; no endpoint and no password in the message."""
    with pytest.raises(ReaderFailed, match=what) as caught:
        yield
    assert (caught.value.reaped, caught.value.fits) == (True, fits)
    told = f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    for secret in ("127.0.0.1", PASSWORDS.dpone_reader, *(str(replica.port) for replica in cluster.replicas)):
        assert secret not in told


def test_a_worker_counts_what_sql_counts(replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader) -> None:
    result = reader.observe(plan)
    name = f"{plan.database}.t"
    text = "`t\\`ext`"
    sql = f"SELECT count(), countIf(isNull({text})), uniqExact(n), uniqExact({text}) FROM {name}"
    rows, nulls, numbers, texts = replicated_cluster.execute(sql)[0]
    seen = result.observation
    assert (rows, nulls, numbers, texts) == (1000, 100, 500, 7)
    assert (seen.row_count, seen.null_counts) == (rows, {"t`ext": nulls})
    assert seen.distinct_counts == {"n": numbers, "t`ext": texts}
    assert result.replica == "replica_1"
    assert 0 < result.milliseconds < 60_000


def test_the_hash_is_the_one_that_any_other_reader_finds(
    replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader
) -> None:
    second = replicated.endpoints(replicated_cluster)[1]
    with ReplicaSession.open(replicated.connection(), second) as session:
        found = observation_sql.observe(session.query, plan.database, "t", plan.columns, plan.metrics, Dialect.V18)
    assert reader.observe(plan).observation == found
    assert found.typed_hash is not None


def test_zero_rows_are_a_result(replicated_cluster: Cluster, cluster_database: str, reader: ServerReader) -> None:
    replicated.create(replicated_cluster, cluster_database, "empty")
    result = reader.observe(replicated.plan(replicated_cluster, cluster_database, "empty"))
    assert result.observation == Observation(0, {"t`ext": 0}, {"n": 0, "t`ext": 0}, "v1:0:0")


def test_replicas_that_the_plan_does_not_name_are_left_alone(
    breakable_cluster: Cluster, plan: ReadPlan, reader: ServerReader
) -> None:
    breakable_cluster.replicas[0].freeze()
    alone = replace(plan, identities={"replica_2": plan.identities["replica_2"]})
    result = reader.observe(alone)
    assert (result.observation.row_count, result.replica) == (1000, "replica_2")


def test_a_replica_without_endpoint_is_not_asked(
    replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader
) -> None:
    other = replace(plan, identities={**plan.identities, "replica_9": plan.identities["replica_1"]})
    with failing(replicated_cluster, "replica replica_9 is not among the admitted ones"):
        reader.observe(other)


@pytest.mark.parametrize("part", ["id", "digest"])
@pytest.mark.parametrize("replica", ["replica_1", "replica_2"])
def test_another_table_is_not_read(
    replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader, replica: str, part: str
) -> None:
    other = replace(plan.identities[replica], **{part: "other"})
    with failing(replicated_cluster, f"on replica {replica} the table is not"):
        reader.observe(replace(plan, identities={**plan.identities, replica: other}))


def test_an_altered_table_is_another_one(replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader) -> None:
    replicated_cluster.execute(f"ALTER TABLE {plan.database}.t ADD COLUMN more Int8")
    with failing(replicated_cluster, "on replica replica_1 the table is not"):
        reader.observe(plan)


def test_a_table_that_does_not_replicate_is_not_read(
    replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader
) -> None:
    second = replicated_cluster.replicas[1]
    second.execute(f"DROP TABLE {plan.database}.t")
    second.execute(f"CREATE TABLE {plan.database}.t (n Int64) ENGINE = MergeTree ORDER BY n")
    with failing(replicated_cluster, "on replica replica_2 the table is not"):
        reader.observe(plan)


@pytest.mark.parametrize("how", ["freeze", "kill"])
@pytest.mark.parametrize("number", [0, 1])
def test_every_replica_must_answer(
    breakable_cluster: Cluster, plan: ReadPlan, reader: ServerReader, number: int, how: str
) -> None:
    replica = breakable_cluster.replicas[number]
    getattr(replica, how)()
    started = time.monotonic()
    with failing(breakable_cluster, f"on replica {replica.name} the server does not answer in time"):
        reader.observe(plan)
    assert time.monotonic() - started < 9


def test_a_wrong_password_is_refused_by_the_replica(replicated_cluster: Cluster, plan: ReadPlan) -> None:
    wrong = replace(replicated.connection(), password="wrong")
    with failing(replicated_cluster, "on replica replica_1 the server refuses this user"):
        ServerReader(wrong, replicated.endpoints(replicated_cluster)).observe(plan)


def test_more_values_than_can_be_counted_are_told_apart(
    replicated_cluster: Cluster, plan: ReadPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observation_sql, "DISTINCT_VALUES_MAX", 499)  # rows beyond it are counted through DISTINCT
    monkeypatch.setitem(observation_sql._DISTINCT_LIMIT, "max_rows_in_distinct", 499)
    reply = replicated.outcome(replicated_cluster, plan)
    assert (reply.outcome, reply.engine_code) == (Outcome.TOO_MANY_VALUES, 191)
    monkeypatch.setitem(observation_sql._DISTINCT_LIMIT, "max_rows_in_distinct", 500)
    counted = replicated.outcome(replicated_cluster, plan).observation
    assert counted is not None
    assert counted.distinct_counts == {"n": 500, "t`ext": 7}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_scan, "PATIENCE_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("number", [0, 1])
def test_every_replica_must_have_all_rows(
    replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader, number: int
) -> None:
    late, early = replicated_cluster.replicas[number], replicated_cluster.replicas[1 - number]
    late.execute(f"SYSTEM STOP FETCHES {plan.database}.t")
    try:
        early.execute(f"INSERT INTO {plan.database}.t VALUES", [(7000, None)])
        early.execute(f"SYSTEM SYNC REPLICA {plan.database}.t")
        reply = replicated.outcome(replicated_cluster, plan)
    finally:
        late.execute(f"SYSTEM START FETCHES {plan.database}.t")
    assert (reply.outcome, reply.replica) == (Outcome.BEHIND, late.name)
    assert reader.observe(plan).observation.row_count == 1001  # it is waited for


@pytest.mark.usefixtures("impatient")
def test_entries_that_nobody_took_up_are_missing_rows(replicated_cluster: Cluster, plan: ReadPlan) -> None:
    second = replicated_cluster.replicas[1]
    second.execute(f"SYSTEM STOP REPLICATION QUEUES {plan.database}.t")
    try:
        replicated_cluster.execute(f"INSERT INTO {plan.database}.t VALUES", [(7000, None)])
        replicated_cluster.execute(f"SYSTEM SYNC REPLICA {plan.database}.t")
        reply = replicated.outcome(replicated_cluster, plan)
    finally:
        second.execute(f"SYSTEM START REPLICATION QUEUES {plan.database}.t")
    assert (reply.outcome, reply.replica) == (Outcome.BEHIND, "replica_2")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("replica", ["replica_1", "replica_2"])
def test_a_replica_whose_session_is_gone_is_not_believed(
    replicated_cluster: Cluster, plan: ReadPlan, replica: str
) -> None:
    replicated.forget_session(replicated_cluster, plan.database, "t", replica)
    reply = replicated.outcome(replicated_cluster, plan)
    assert (reply.outcome, reply.replica) == (Outcome.NO_KEEPER, replica)


def test_waiting_merges_change_no_row(replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader) -> None:
    for replica in replicated_cluster.replicas:
        replica.execute(f"SYSTEM STOP MERGES {plan.database}.t")
    replicated_cluster.execute(f"INSERT INTO {plan.database}.t VALUES", [(7000, None)])
    with ThreadPoolExecutor(1) as beside:
        merging = beside.submit(replicated_cluster.execute, f"OPTIMIZE TABLE {plan.database}.t FINAL", seconds=20)
        try:
            assert _wait_queued(replicated_cluster, plan.database)
            assert reader.observe(plan).observation.row_count == 1001
        finally:
            for replica in replicated_cluster.replicas:
                replica.execute(f"SYSTEM START MERGES {plan.database}.t")
        merging.result()


def test_a_frozen_keeper_is_no_observation(breakable_cluster: Cluster, plan: ReadPlan, reader: ServerReader) -> None:
    breakable_cluster.keeper.freeze()
    started = time.monotonic()
    with failing(
        breakable_cluster, "on replica replica_[12] (the server has no living session|the table is read-only)"
    ):
        reader.observe(plan)
    assert time.monotonic() - started < 30


WRITES = (
    "INSERT INTO {database}.t (n) VALUES (1)",
    "INSERT INTO {database}.t (n) SELECT 1",
    "ALTER TABLE {database}.t ADD COLUMN x Int8",
    "DROP TABLE {database}.t",
    "CREATE TABLE {database}.x (n Int8) ENGINE = Memory",
    "SET readonly = 0",
    "OPTIMIZE TABLE {database}.t",
    "TRUNCATE TABLE {database}.t",
    "RENAME TABLE {database}.t TO {database}.x",
)


@pytest.mark.parametrize("statement", WRITES)
def test_a_worker_cannot_write_whoever_it_is(replicated_cluster: Cluster, plan: ReadPlan, statement: str) -> None:
    with pytest.raises(EngineFailed) as caught, _opened(*_first(replicated_cluster), lambda: 10.0) as run:
        run(statement.format(database=plan.database))
    assert caught.value.engine_code == 164  # READONLY


def test_a_profile_cannot_cut_a_count_short(replicated_cluster: Cluster) -> None:
    with _opened(*_first(replicated_cluster), lambda: 10.0) as run:
        rows = run("SELECT name, value, changed FROM system.settings WHERE name LIKE '%overflow_mode'")
        limits = run("SELECT toUInt32(value) AS seconds FROM system.settings WHERE name = 'max_execution_time'")
    assert len(rows) >= 9
    assert {(row["value"], row["changed"]) for row in rows} == {("throw", 1)}
    assert limits == [{"seconds": 10}]


def test_the_server_ends_a_statement_by_itself(replicated_cluster: Cluster) -> None:
    started = time.monotonic()
    with pytest.raises(EngineFailed) as caught, _opened(*_first(replicated_cluster), lambda: 1.9) as run:
        run("SELECT sum(number) AS x FROM (SELECT * FROM system.numbers)")
    assert caught.value.engine_code == 159  # TIMEOUT_EXCEEDED
    assert time.monotonic() - started < 3


def test_credentials_are_nowhere_but_in_the_pipe(
    replicated_cluster: Cluster, plan: ReadPlan, reader: ServerReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in replicated_cluster.environ().items():
        monkeypatch.setenv(name, value)
    reader.warm()
    process = reader._waiting[0]._process
    assert process is not None
    _wait_ready(reader)
    here = Path(f"/proc/{process.pid}")
    told = (here / "cmdline").read_bytes() + (here / "environ").read_bytes()
    assert b"server_worker" in told
    for secret in (PASSWORDS.dpone, PASSWORDS.dpone_reader, "DPONE_CONN", str(replicated_cluster.replicas[0].port)):
        assert secret.encode() not in told
    assert {(here / "fd" / str(number)).readlink() for number in (0, 1, 2)} == {Path("/dev/null")}
    assert (here / "limits").read_text().split("Max core file size")[1].split()[:2] == ["0", "0"]
    assert reader.observe(plan).observation.row_count == 1000
    assert PASSWORDS.dpone_reader not in repr(vars(reader))


def test_a_row_count_alone_is_enough(plan: ReadPlan, reader: ServerReader) -> None:
    assert reader.observe(replace(plan, metrics=Metrics())).observation == Observation(1000)


def _wait_ready(reader: ServerReader) -> None:
    """Until the waiting worker says that it has started."""
    ready = select.poll()
    ready.register(reader._waiting[0]._ready, select.POLLIN)
    assert ready.poll(30_000)


def _first(cluster: Cluster) -> tuple[Connection, Endpoint]:
    return replicated.connection("dpone"), replicated.endpoints(cluster)[0]


def _wait_queued(cluster: Cluster, database: str) -> bool:
    """Whether a merge comes to wait on the second replica."""
    queued = f"SELECT count() FROM system.replication_queue WHERE database = '{database}' AND type = 'MERGE_PARTS'"
    deadline = time.monotonic() + 5
    while not cluster.replicas[1].execute(queued)[0][0]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
