"""A server that lies: garbage in place of a reply, sizes that nobody has, system tables of other shapes."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dpone.adapters.authority.marker import DATABASE, read_markers
from dpone.adapters.cluster.native import text, varint
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.adapters.sources.clickhouse_session import ServerSession
from dpone.domain.errors import DponeError, EngineFailed, ErrorCode, LedgerFailed, SourceFailed
from tests.servers.clickhouse import ClickHouseServer

CONNECTION = Connection("replay_target", "nowhere.invalid", username="dpone", password="c4n4ry-of-a-session")
_REVISION = 54_412
_HELLO = (
    varint(0) + text("ClickHouse") + varint(18) + varint(16) + varint(_REVISION)
    + text("UTC") + text("\x1b[2Jreplica") + varint(1)
)  # fmt: skip
_PONG = varint(4)
_DATA = varint(1) + text("")
_NO_INFO = varint(1) + b"\0" + varint(2) + b"\xff\xff\xff\xff" + varint(0)
_HUGE = varint(2**62)
_ONE_CELL = _DATA + _NO_INFO + varint(1) + varint(1)


@contextlib.contextmanager
def lying(*replies: bytes) -> Iterator[Endpoint]:
    """A server that answers whatever comes with these bytes, one after another, and then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)

        def serve() -> None:
            with contextlib.suppress(OSError):
                connected, _ = listening.accept()
                connected.settimeout(10)
                with connected:
                    for reply in replies:
                        connected.recv(65_536)
                        connected.sendall(reply)
                    connected.shutdown(socket.SHUT_WR)
                    connected.recv(65_536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Endpoint("replica_1", "127.0.0.1", listening.getsockname()[1])
        thread.join(20)
        assert not thread.is_alive()


def _noise(seed: int, length: int = 400) -> bytes:
    return random.Random(seed).randbytes(length)


REPLIES: dict[str, tuple[bytes, ...]] = {
    **{f"noise {seed} for a greeting": (_noise(seed),) for seed in range(6)},
    **{f"noise {seed} after the greeting": (_HELLO, _PONG, _noise(seed)) for seed in range(6)},
    **{f"noise {seed} for a block": (_HELLO, _PONG, _DATA + _NO_INFO + _noise(seed)) for seed in range(6)},
    "nothing": (),
    "a web server": (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",),
    "a name of an exabyte": (varint(0) + _HUGE,),
    "an exabyte of columns": (_HELLO, _PONG, _DATA + _NO_INFO + _HUGE + _HUGE),
    "a column's name of an exabyte": (_HELLO, _PONG, _ONE_CELL + _HUGE),
    "a string of an exabyte": (_HELLO, _PONG, _ONE_CELL + text("a") + text("String") + _HUGE),
    "a type that nobody knows": (_HELLO, _PONG, _ONE_CELL + text("a") + text("Nope(((")),
    "a text that is not UTF-8": (_HELLO, _PONG, _ONE_CELL + b"\x02\xff\xfe" + text("UInt8")),
    "a type that nests without end": (
        _HELLO, _PONG, _ONE_CELL + text("a") + text("Array(" * 5_000 + "UInt8" + ")" * 5_000),
    ),
    "rows without a header": (
        _HELLO, _PONG, _ONE_CELL + text("a") + text("UInt8") + b"\x05" + varint(5),
    ),
    "a packet that nobody knows": (_HELLO, _PONG, varint(99)),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_that_is_none_is_an_unreachable_replica(kind: str) -> None:
    with (
        lying(*REPLIES[kind]) as endpoint,
        pytest.raises(EngineFailed) as caught,
        ReplicaSession.open(CONNECTION, endpoint, connect_seconds=3, reply_seconds=3) as session,
    ):
        session.query("SELECT 1 AS one")
    said = f"{caught.value.what} {caught.value.safe} {caught.value.next} {caught.value.errors}"
    assert caught.value.code in (ErrorCode.REPLICA_UNREACHABLE, ErrorCode.EVIDENCE_INCOMPLETE)
    assert said.isprintable()
    assert "replica_1" in said
    assert "c4n4ry" not in said
    assert "127.0.0.1" not in said


def test_the_same_server_is_believed_when_it_answers_properly() -> None:
    header = _DATA + _NO_INFO + varint(1) + varint(0) + text("a") + text("UInt8")
    block = _ONE_CELL + text("a") + text("UInt8") + b"\x05"
    with (
        lying(_HELLO, _PONG, header + block + varint(5)) as endpoint,
        ReplicaSession.open(CONNECTION, endpoint, connect_seconds=3, reply_seconds=3) as session,
    ):
        assert session.query("SELECT 5 AS a") == [{"a": 5}]


# ------------------------------------------------------------------------------------------------ the rows of a source

_NO_SETTING = _DATA + _NO_INFO + varint(1) + varint(0) + text("name") + text("String") + varint(5)
BLOCKS: dict[str, bytes] = {
    **{
        kind: replies[2] for kind, replies in REPLIES.items() if replies[:2] == (_HELLO, _PONG) and "header" not in kind
    },
    "a type that is never asked for": _ONE_CELL + text("a") + text("Date") + b"\0\0",
    "a decimal of too many digits": _ONE_CELL + text("a") + text("Decimal(76, 5)") + bytes(32),
    "more rows than come": _DATA + _NO_INFO + varint(1) + varint(1000) + text("a") + text("UInt64") + bytes(80),
    "more NULLs than come": _DATA + _NO_INFO + varint(1) + varint(1000) + text("a") + text("Nullable(Int8)") + bytes(8),
    "an exabyte of rows": _DATA + _NO_INFO + varint(1) + _HUGE + text("a") + text("UInt64") + bytes(80),
    "half a string": _ONE_CELL + text("a") + text("String") + varint(9) + b"half",
}


@contextlib.contextmanager
def reading(block: bytes) -> Iterator[Iterator[Any]]:
    """The batches of a source whose server answers the read with these bytes."""
    with lying(_HELLO, _PONG, _NO_SETTING, _PONG, block) as endpoint:
        params = {"connect_timeout": 3, "receive_timeout": 3}
        connection = Connection("replay_source", "127.0.0.1", endpoint.port, password="c4n4ry", params=params)
        with ServerSession.open(connection) as session:
            yield session.stream("SELECT a FROM t", "t", 1)


@pytest.mark.parametrize("kind", BLOCKS)
def test_rows_that_are_none_are_an_unreadable_source(kind: str) -> None:
    with reading(BLOCKS[kind]) as batches, pytest.raises(SourceFailed) as caught:
        list(batches)
    said = f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    assert caught.value.code is ErrorCode.SOURCE_UNREADABLE
    assert said.isprintable()
    assert "c4n4ry" not in said
    assert "127.0.0.1" not in said


@pytest.mark.parametrize(("columns", "cells"), [(0, b""), (2, 2 * (text("a") + text("UInt8") + b"\5"))])
def test_another_number_of_columns_than_was_asked_for(columns: int, cells: bytes) -> None:
    block = _DATA + _NO_INFO + varint(columns) + varint(1) + cells + varint(5)
    with reading(block) as batches, pytest.raises(SourceFailed, match="brought what are no rows of"):
        list(batches)


def test_no_memory_is_taken_for_rows_that_are_only_announced() -> None:
    announced = _DATA + _NO_INFO + varint(1) + varint(2**25) + text("a") + text("String") + b"\1a"
    with reading(announced) as batches, pytest.raises(SourceFailed, match="blocks of over 16 million rows"):
        list(batches)


def test_rows_that_are_some_are_read() -> None:
    header = _DATA + _NO_INFO + varint(1) + varint(0) + text("a") + text("UInt8")
    block = _DATA + _NO_INFO + varint(1) + varint(3) + text("a") + text("Nullable(UInt8)") + b"\0\1\0" + b"\5\6\7"
    with reading(header + block + varint(5)) as batches:
        assert [batch.to_pydict() for batch in batches] == [{"a": [5, None, 7]}]


# ------------------------------------------------------------------------------------- the marker, in other shapes


@pytest.fixture
def session(clickhouse: ClickHouseServer) -> Iterator[ReplicaSession]:
    """A server that nobody provisioned."""
    connection = Connection("replay_target", "nowhere.invalid")
    clickhouse.execute(f"CREATE DATABASE {DATABASE}")
    with ReplicaSession.open(connection, Endpoint("replica_1", "127.0.0.1", clickhouse.port)) as opened:
        yield opened
    clickhouse.execute(f"DROP DATABASE {DATABASE}")


@pytest.mark.parametrize(
    "row",
    [
        "'p' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 'x' AS epoch, 1 AS revision, ['d'] AS databases",
        "'p' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, -1 AS epoch, 1 AS revision, ['d'] AS databases",
        "'p' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 1.5 AS epoch, 1 AS revision, ['d'] AS databases",
        "'p' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 1 AS epoch, NULL AS revision, ['d'] AS databases",
        "'p' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 1 AS epoch, 1 AS revision, 'db' AS databases",
        "'p' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 1 AS epoch, 1 AS revision, [1] AS databases",
        "1 AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 1 AS epoch, 1 AS revision, ['d'] AS databases",
        "'p' AS platform_id, 'c' AS cluster, NULL AS ledger_id, 1 AS epoch, 1 AS revision, ['d'] AS databases",
        "'\\x1b[2J' AS platform_id, 'c' AS cluster, 'l' AS ledger_id, 1 AS epoch, 1 AS revision, ['d'] AS databases",
        "'p' AS platform_id, 'c' AS cluster, 'l\\n' AS ledger_id, 1 AS epoch, 1 AS revision, ['d'] AS databases",
    ],
)
def test_a_marker_of_another_shape_is_no_marker_of_any_ledger(
    row: str, session: ReplicaSession, clickhouse: ClickHouseServer
) -> None:
    clickhouse.execute(f"CREATE VIEW {DATABASE}.platform AS SELECT {row}")
    with pytest.raises(LedgerFailed) as caught:
        read_markers(session)
    assert caught.value.code is ErrorCode.LEDGER_CORRUPT
    assert caught.value.what.isprintable()


def test_a_marker_that_lacks_a_column_is_an_error_of_that_replica(
    session: ReplicaSession, clickhouse: ClickHouseServer
) -> None:
    clickhouse.execute(f"CREATE VIEW {DATABASE}.platform AS SELECT 1 AS platform_id")
    with pytest.raises(DponeError, match="replica_1"):
        read_markers(session)
