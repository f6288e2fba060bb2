"""One connection to one replica: bounded, used up by any error, and silent about everything but the replica's name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.clickhouse.dialects import Dialect
from dpone.adapters.cluster.dialect import settings_of_a_cluster_statement, settings_of_a_scan, settings_of_an_insert
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.domain.errors import EngineFailed, ErrorCode
from tests.servers.cluster import PASSWORDS

CONNECTION = Connection("replay_target", "nowhere.invalid", username="dpone", password=PASSWORDS.dpone)


@pytest.fixture
def endpoint(replicated_cluster: Cluster) -> Endpoint:
    return Endpoint("replica_1", "127.0.0.1", replicated_cluster.replicas[0].port)


@pytest.fixture
def session(endpoint: Endpoint) -> Iterator[ReplicaSession]:
    with ReplicaSession.open(CONNECTION, endpoint) as opened:
        yield opened


def test_it_reaches_the_endpoint_and_not_the_connections_host(session: ReplicaSession) -> None:
    assert session.query("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 1, 'x'") == [{"a": 1, "b": "x"}] * 2
    assert session.version == (18, 16, 1)
    assert session.dialect is Dialect.V18
    assert session.settings_travel_as_text is False


def test_settings_reach_the_statement(session: ReplicaSession) -> None:
    asked = "SELECT value FROM system.settings WHERE name = 'receive_timeout'"
    assert session.query(asked, {"receive_timeout": 77}) == [{"value": "77"}]


def test_the_bound_of_a_cluster_statement_is_what_the_server_reads(session: ReplicaSession) -> None:
    """In binary a signed number travels in zigzag, which the driver does not do: twice the number is read as it."""
    asked = "SELECT value FROM system.settings WHERE name = 'distributed_ddl_task_timeout'"
    settings = settings_of_a_cluster_statement(17, as_text=session.settings_travel_as_text)
    assert session.query(asked, settings) == [{"value": "17"}]


@pytest.mark.parametrize("pinned", [settings_of_a_scan(Dialect.V18), settings_of_an_insert(Dialect.V18, "")])
def test_what_is_pinned_reaches_an_old_server(session: ReplicaSession, pinned: dict[str, int | str]) -> None:
    """The driver leaves out, in silence, what it does not know the binary form of."""
    names = ", ".join(f"'{name}'" for name in pinned)
    found = session.query(f"SELECT name, value FROM system.settings WHERE name IN ({names})", pinned)
    assert {row["name"]: row["value"] for row in found} == {name: str(value) for name, value in pinned.items()}


@pytest.mark.parametrize(("version", "dialect"), [((23, 2, 9), Dialect.V18), ((23, 3, 0), Dialect.PRESENT)])
def test_servers_between_the_two_are_spoken_to_as_to_the_old_one(
    session: ReplicaSession, version: tuple[int, int, int], dialect: Dialect
) -> None:
    assert replace(session, version=version).dialect is dialect


def test_an_error_of_the_server_is_its_number_and_name_and_uses_the_session_up(session: ReplicaSession) -> None:
    with pytest.raises(EngineFailed) as caught:
        session.execute("SELECT toDate('s3cr3t') FROM nothing.nowhere")
    assert caught.value.engine_code == 81
    assert "81 UNKNOWN_DATABASE" in caught.value.what
    assert "nowhere" not in caught.value.what
    with pytest.raises(EngineFailed) as again:
        session.query("SELECT 1 AS one")
    assert again.value.code is ErrorCode.INTERNAL


def test_its_repr_names_the_replica_only(endpoint: Endpoint, session: ReplicaSession) -> None:
    assert repr(endpoint) == "Endpoint(replica='replica_1')"
    assert str(endpoint.port) not in repr(session)


def test_a_wrong_password_is_refused_and_not_unreachable(endpoint: Endpoint) -> None:
    wrong = replace(CONNECTION, password="wr0ng-s3cr3t")
    with pytest.raises(EngineFailed) as caught, ReplicaSession.open(wrong, endpoint):
        pass
    assert caught.value.code is ErrorCode.CONNECTION_REFUSED
    assert "wr0ng" not in f"{caught.value.what}{caught.value.safe}{caught.value.next}"


def test_a_port_that_nobody_listens_on_is_unreachable() -> None:
    with pytest.raises(EngineFailed) as caught, ReplicaSession.open(CONNECTION, Endpoint("replica_7", "127.0.0.1", 1)):
        pass
    assert caught.value.code is ErrorCode.REPLICA_UNREACHABLE
    assert caught.value.what == "Replica replica_7 cannot be reached."


def test_a_frozen_server_neither_greets_nor_answers_for_ever(breakable_cluster: Cluster, endpoint: Endpoint) -> None:
    with ReplicaSession.open(CONNECTION, endpoint, connect_seconds=1, reply_seconds=1) as session:
        session.query("SELECT 1 AS one")
        breakable_cluster.replicas[0].freeze()
        for attempt in (lambda: session.query("SELECT 1 AS one"), lambda: _opened(endpoint)):
            began = time.monotonic()
            with pytest.raises(EngineFailed) as caught:
                attempt()
            assert caught.value.code is ErrorCode.REPLICA_UNREACHABLE
            assert time.monotonic() - began < 3


def test_a_long_statement_ends_with_the_bound(session: ReplicaSession, endpoint: Endpoint) -> None:
    """Progress keeps an old server's silence short: only a wait without any is cut."""
    with ReplicaSession.open(CONNECTION, endpoint, reply_seconds=1) as short:
        began = time.monotonic()
        with pytest.raises(EngineFailed) as caught:
            short.query("SELECT sleep(3) AS slept", {"interactive_delay": 100_000_000})
        assert caught.value.code is ErrorCode.REPLICA_UNREACHABLE
        assert time.monotonic() - began < 2.5


def test_an_interrupted_session_ends_what_another_thread_waits_for(session: ReplicaSession) -> None:
    import threading

    threading.Timer(0.3, session.interrupt).start()
    began = time.monotonic()
    with pytest.raises(EngineFailed):
        session.query("SELECT sleep(3) AS slept")
    assert time.monotonic() - began < 2


def _opened(endpoint: Endpoint) -> None:
    with ReplicaSession.open(CONNECTION, endpoint, connect_seconds=1, reply_seconds=1):
        pass
