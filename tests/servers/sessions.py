"""One server for all tests of a session: started when the first test needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed
from scripts.cluster_servers.zookeeper import is_installed as zookeeper_is_installed

from .clickhouse import ClickHouseServer, clickhouse_server
from .cluster import Cluster, cluster, unique_database
from .postgres import PostgresServer, binaries, postgres_server
from .required import require
from .zookeeper import ZooKeeper, zookeeper_server


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouseServer]:
    """A ClickHouse server without a Keeper."""
    require(clickhouse_is_installed(), "clickhouse-server")
    with clickhouse_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    require(binaries() is not None, "PostgreSQL")
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeper]:
    """A ZooKeeper of its own, with no ClickHouse beside it."""
    require(zookeeper_is_installed(), "ZooKeeper")
    with zookeeper_server() as server:
        yield server


@pytest.fixture(scope="session")
def replicated_cluster() -> Iterator[Cluster]:
    """Two ClickHouse servers and one ZooKeeper. A test that breaks one takes ``breakable_cluster``."""
    require(clickhouse_is_installed(), "clickhouse-server")
    require(zookeeper_is_installed(), "ZooKeeper")
    with cluster() as made:
        yield made


@pytest.fixture
def breakable_cluster(replicated_cluster: Cluster) -> Iterator[Cluster]:
    """The same cluster; whatever the test froze, killed or stopped runs again before the next one begins."""
    replicated_cluster.start()
    yield replicated_cluster
    replicated_cluster.start()


@pytest.fixture
def cluster_database(replicated_cluster: Cluster) -> Iterator[str]:
    """A database of the test's own, on every replica."""
    with unique_database(replicated_cluster) as name:
        yield name
