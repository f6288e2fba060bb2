"""What ClickHouse 18.16 can restrict, on a server with exactly the rights that ``scripts/cluster`` gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed
from scripts.cluster_servers.seed import ALLOWED_DATABASES, provide_tables
from scripts.cluster_servers.zookeeper import is_installed as zookeeper_is_installed

from .cluster import Cluster, cluster
from .required import require

READONLY, DENIED = 164, 291
ON_CLUSTER = "ON CLUSTER replay_cluster"
COLUMNS = "(n Int32) ENGINE = Log"


@pytest.fixture(scope="module")
def restricted() -> Iterator[Cluster]:
    require(clickhouse_is_installed(), "clickhouse-server")
    require(zookeeper_is_installed(), "ZooKeeper")
    with cluster(ALLOWED_DATABASES) as made:
        provide_tables(made)
        made.execute(f"CREATE TABLE analytics.seen {COLUMNS}")
        yield made


def typed(made: Cluster, user: str, statement: str, rows: Any = None, **settings: Any) -> Any:
    """A statement as a user. The result, or the number of the server's error."""
    from clickhouse_driver.errors import ServerException

    password = getattr(made.topology.passwords, user)
    try:
        return made.execute(statement, rows, user=user, password=password, settings=settings)
    except ServerException as error:
        return int(error.code)


def test_the_product_may_do_what_it_needs(restricted: Cluster) -> None:
    path = "ReplicatedMergeTree('/tests/rights', '{replica}') ORDER BY n"
    statements = [
        "CREATE DATABASE IF NOT EXISTS dpone_authority",
        f"CREATE TABLE dpone_authority.platform {COLUMNS}",
        f"CREATE TABLE analytics.candidate {ON_CLUSTER} (n Int32) ENGINE = {path}",
        "SYSTEM SYNC REPLICA analytics.candidate",
        f"RENAME TABLE analytics.candidate TO analytics.arm, analytics.arm TO analytics.live {ON_CLUSTER}",
        "SELECT zookeeper_path FROM system.replicas",
        "SELECT macro, substitution FROM system.macros",
        "SELECT host_name, port FROM system.clusters",
        "SELECT name, value, czxid FROM system.zookeeper WHERE path = '/'",
        f"DROP TABLE analytics.live {ON_CLUSTER}",
    ]
    assert [one for one in statements if isinstance(typed(restricted, "dpone", one), int)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count() FROM source.records",
        "INSERT INTO analytics.seen SELECT toInt32(record_id) FROM source.records",
        f"CREATE TABLE source.mine {COLUMNS}",
        f"CREATE TABLE source.mine {ON_CLUSTER} {COLUMNS}",
        "DROP TABLE source.records",
        f"DROP TABLE source.records {ON_CLUSTER}",
        "RENAME TABLE analytics.seen TO source.seen",
        "CREATE DATABASE mine",
        f"CREATE DATABASE mine {ON_CLUSTER}",
        "CREATE VIEW analytics.look AS SELECT * FROM source.records",
    ],
)
def test_the_product_may_touch_nothing_else(restricted: Cluster, statement: str) -> None:
    assert typed(restricted, "dpone", statement) == DENIED


def test_another_server_is_no_way_around(restricted: Cluster) -> None:
    address = f"127.0.0.1:{restricted.replicas[0].port}"
    assert typed(restricted, "dpone", f"SELECT * FROM remote('{address}', source.records)") == DENIED


def test_names_in_other_databases_are_not_shown(restricted: Cluster) -> None:
    assert typed(restricted, "dpone", "SELECT count() FROM system.tables WHERE database = 'source'") == [(0,)]


@pytest.mark.parametrize(
    ("user", "database"), [("dpone_reader", "analytics"), ("source_reader", "source")], ids=["target", "source"]
)
class TestReaders:
    @pytest.mark.parametrize("settings", [{}, {"readonly": 0}], ids=["as given", "asking for more"])
    def test_they_change_nothing(self, restricted: Cluster, user: str, database: str, settings: dict[str, int]) -> None:
        made = [
            f"CREATE TABLE {database}.mine {COLUMNS}",
            f"CREATE TABLE {database}.mine {ON_CLUSTER} {COLUMNS}",
            f"DROP DATABASE {database}",
            "SYSTEM DROP DNS CACHE",
        ]
        assert {typed(restricted, user, one, **settings) for one in made} == {READONLY}

    def test_they_cannot_raise_their_rights(self, restricted: Cluster, user: str, database: str) -> None:
        assert typed(restricted, user, "SET readonly = 0") == READONLY
        assert typed(restricted, user, "SELECT 1 SETTINGS readonly = 0") == READONLY

    def test_they_see_their_own_database_only(self, restricted: Cluster, user: str, database: str) -> None:
        tables = {"analytics": "analytics.seen", "source": "source.records"}
        answers = {name: typed(restricted, user, f"SELECT count() FROM {table}") for name, table in tables.items()}
        assert [name for name, answer in answers.items() if answer != DENIED] == [database]


def test_limits_that_a_reader_sends_hold(restricted: Cluster) -> None:
    """As they would not with readonly = 1, where this version ignores what a client sends."""
    statement = "SELECT sum(record_id) FROM source.records"
    assert typed(restricted, "source_reader", statement, max_rows_to_read=1, read_overflow_mode="throw") == 158
