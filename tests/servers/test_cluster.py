"""The cluster itself: it replicates, breaks as asked and comes back, and never outlives the tests."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts.cluster_servers.process import start_time

from .cluster import Cluster
from .required import require
from .sessions import breakable_cluster, cluster_database, replicated_cluster

__all__ = ["breakable_cluster", "cluster_database", "replicated_cluster"]

ON_CLUSTER = "ON CLUSTER replay_cluster"
DEADLINE_SECONDS = 10.0


def table(made: Cluster, database: str) -> str:
    """A replicated table of one row on every replica."""
    name = f"{database}.numbers"
    path = f"/tests/{database}/numbers"
    made.execute(
        f"CREATE TABLE {name} {ON_CLUSTER} (n Int32) ENGINE = ReplicatedMergeTree('{path}', '{{replica}}') ORDER BY n"
    )
    made.execute(f"INSERT INTO {name} VALUES", [(7,)])
    made.replicas[1].execute(f"SYSTEM SYNC REPLICA {name}")
    return name


def test_a_row_is_on_both_replicas(replicated_cluster: Cluster, cluster_database: str) -> None:
    name = table(replicated_cluster, cluster_database)
    assert [one.execute(f"SELECT n FROM {name}") for one in replicated_cluster.replicas] == [[(7,)]] * 2


def test_each_replica_knows_its_name(replicated_cluster: Cluster) -> None:
    macros = [dict(one.execute("SELECT macro, substitution FROM system.macros")) for one in replicated_cluster.replicas]
    assert macros == [
        {"cluster": "replay_cluster", "shard": "01", "replica": one.name} for one in replicated_cluster.replicas
    ]


def test_the_servers_name_the_clusters_that_are_refused(replicated_cluster: Cluster) -> None:
    found = replicated_cluster.execute(
        "SELECT cluster, max(shard_num), count() FROM system.clusters GROUP BY cluster ORDER BY cluster"
    )
    assert found == [("external_replication", 1, 2), ("replay_cluster", 1, 2), ("two_shards", 2, 2)]


def test_a_frozen_replica_is_silent_until_it_is_thawed(breakable_cluster: Cluster) -> None:
    second = breakable_cluster.replicas[1]
    second.freeze()
    assert (second.is_alive, second.is_ready()) == (True, False)
    second.thaw()
    second.wait_ready()


def test_a_killed_replica_comes_back_with_its_rows(breakable_cluster: Cluster, cluster_database: str) -> None:
    name, second = table(breakable_cluster, cluster_database), breakable_cluster.replicas[1]
    port = second.port
    second.kill()
    assert not second.is_alive
    second.start()
    assert (second.port, second.execute(f"SELECT n FROM {name}")) == (port, [(7,)])


def test_a_replica_comes_back_with_an_empty_folder(breakable_cluster: Cluster, cluster_database: str) -> None:
    second = breakable_cluster.replicas[1]
    second.stop()
    second.start(empty=True)
    assert second.execute(f"SELECT count() FROM system.databases WHERE name = '{cluster_database}'") == [(0,)]


def test_the_keeper_comes_back_with_what_it_knew(breakable_cluster: Cluster, cluster_database: str) -> None:
    name = table(breakable_cluster, cluster_database)
    breakable_cluster.keeper.kill()
    assert not breakable_cluster.keeper.is_ready()
    breakable_cluster.start()
    breakable_cluster.execute(f"INSERT INTO {name} VALUES", [(8,)])


def test_the_users_that_read_cannot_write(replicated_cluster: Cluster, cluster_database: str) -> None:
    from clickhouse_driver.errors import ServerException

    password = replicated_cluster.topology.passwords.dpone_reader
    with pytest.raises(ServerException) as refused:
        replicated_cluster.execute(
            f"CREATE TABLE {cluster_database}.x (n Int32) ENGINE = Memory", user="dpone_reader", password=password
        )
    assert refused.value.code == 164


_OWNER = """
from tests.servers.cluster import cluster
with cluster() as made:
    print(made.folder, *(one.process.pid for one in made.servers), flush=True)
    input()
"""


def test_no_server_outlives_a_killed_owner(replicated_cluster: Cluster) -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdin is not None
    assert owner.stdout is not None
    with owner.stdin, owner.stdout:
        folder, *words = owner.stdout.readline().split()
        pids = [int(word) for word in words]
        assert None not in map(start_time, pids)
        owner.send_signal(signal.SIGKILL)
        owner.wait(DEADLINE_SECONDS)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(start_time(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [start_time(pid) for pid in pids] == [None] * 3
    subprocess.run(["rm", "-rf", folder], check=True, timeout=DEADLINE_SECONDS)
    assert not Path(folder).exists()


@pytest.mark.parametrize("variable", ["CI", "DPONE_REQUIRE_SERVERS"])
def test_a_missing_server_is_a_failure_where_one_is_required(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(pytest.fail.Exception, match="not installed"):
        require(False, "A server")


def test_a_missing_server_is_a_skip_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CI", "DPONE_REQUIRE_SERVERS"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(pytest.skip.Exception, match="not installed"):
        require(False, "A server")
