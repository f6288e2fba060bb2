"""The session of a ledger behind a ClickHouse server, on a real one: text in and out, thrown away after failures."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from dpone.adapters.connections.connection import Connection
from dpone.adapters.connections.sql import ServerSql
from dpone.domain.errors import DponeError, ErrorCode, LedgerFailed
from dpone.ledger.sql import SqlFailed
from dpone.ledger.store import open_ledger
from tests.faults.relay import Cut, Relay
from tests.servers.clickhouse import ClickHouseServer
from tests.servers.sessions import clickhouse

__all__ = ["clickhouse"]


@pytest.fixture
def relay(clickhouse: ClickHouseServer) -> Iterator[Relay]:
    made = Relay(clickhouse.port)
    yield made
    made.close()


def session(port: int, **params: float) -> ServerSql:
    return ServerSql(Connection("ledger_ref", "127.0.0.1", port, username="default", params=params))


def test_values_travel_as_text_and_a_failure_carries_a_number_only(clickhouse: ClickHouseServer) -> None:
    sql = session(clickhouse.port)
    assert [list(row) for row in sql.run("SELECT toString(1), hex(unhex('00ff'))")] == [["1", "00FF"]]
    with pytest.raises(SqlFailed) as caught:
        sql.run("SELECT secret FROM nowhere")
    assert (caught.value.code, caught.value.exists) == (60, False)
    assert "nowhere" not in str(caught.value)
    assert sql.run("SELECT '2'") == [("2",)]
    sql.close()
    sql.close()


def test_a_statement_of_two_mebibytes_is_taken(clickhouse: ClickHouseServer) -> None:
    sql = session(clickhouse.port)
    assert sql.run(f"SELECT toString(length(unhex('{'41' * 1024 * 1024}')))") == [(str(1024 * 1024),)]
    sql.close()


def test_a_lost_answer_has_no_number_and_the_next_statement_connects_again(relay: Relay) -> None:
    sql = session(relay.port, receive_timeout=3)
    relay.arm(Cut.UNHEARD, lambda data: b"SELECT 'lost'" in data)
    with pytest.raises(SqlFailed) as caught:
        sql.run("SELECT 'lost'")
    assert caught.value.code is None
    assert sql.run("SELECT 'found'") == [("found",)]
    relay.close()
    with pytest.raises(SqlFailed) as gone:
        sql.run("SELECT 'gone'")
    assert gone.value.code is None
    with pytest.raises(SqlFailed):  # and nobody to connect to
        sql.run("SELECT 'gone'")
    sql.close()


def test_nobody_there_at_the_start_is_the_connections_own_error() -> None:
    with pytest.raises(DponeError) as caught:
        session(1)
    assert caught.value.code is ErrorCode.CONNECTION_REFUSED


def test_a_server_without_keepermap_is_told_so(clickhouse: ClickHouseServer) -> None:
    url = f"keepermap://ledger_ref/led_{uuid4().hex[:8]}"
    with pytest.raises(LedgerFailed, match="KeeperMap or its strict mode is not available"):
        open_ledger(url, create=True, connect=lambda reference: session(clickhouse.port))
    with pytest.raises(LedgerFailed) as caught:
        open_ledger(url, create=False, connect=lambda reference: session(clickhouse.port))
    assert "127.0.0.1" not in caught.value.what
