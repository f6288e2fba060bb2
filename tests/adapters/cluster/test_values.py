"""Every type and its boundaries, through the native encoder into a real server and back by another way."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.cluster.filling import fill
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.tables import Column

pa = pytest.importorskip("pyarrow")

SLOW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@dataclass(frozen=True)
class Way:
    """One type: its Arrow type, values, how the server shows one (``{}``: the column), and the value shown."""

    type: str
    arrow: Any
    values: st.SearchStrategy[Any]
    shows: str
    shown: Callable[[Any], Any]


def _integers(bits: int, signed: bool) -> Way:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    name = f"{'Int' if signed else 'UInt'}{bits}"
    values = st.sampled_from([low, high, 0, low + 1]) | st.integers(low, high)
    return Way(name, pa.type_for_alias(name.lower()), values, "{}", lambda value: value)


def _float(bits: int) -> Way:
    letter, number = ("f", "I") if bits == 32 else ("d", "Q")
    special = st.sampled_from([0.0, -0.0, math.inf, -math.inf, 2.0**-149, 1.5])
    return Way(
        f"Float{bits}",
        pa.float32() if bits == 32 else pa.float64(),
        special | st.floats(width=32 if bits == 32 else 64, allow_nan=False),
        f"reinterpretAsUInt{bits}(reinterpretAsString({{}}))",
        lambda value: struct.unpack(f"<{number}", struct.pack(f"<{letter}", value))[0],
    )


def _decimal(precision: int, scale: int) -> Way:
    most = 10**precision - 1
    unscaled = st.sampled_from([0, 1, -1, most, -most]) | st.integers(-most, most)
    return Way(
        f"Decimal({precision}, {scale})",
        pa.decimal128(precision, scale),
        unscaled.map(lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))),
        "{}",
        lambda value: value,
    )


def _moment(name: str) -> Way:
    return Way(
        name,
        pa.timestamp("s", "UTC"),
        (st.sampled_from([0, 1, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1)).map(
            lambda second: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
        ),
        "toUInt32({})",
        lambda value: int(value.timestamp()),
    )


LENGTHS = st.sampled_from([0, 1, 127, 128, 129, 16_383, 16_384, 70_000])
WAYS = [
    *(_integers(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    _float(32),
    _float(64),
    Way("String", pa.string(), st.text(max_size=40) | LENGTHS.map("é".__mul__), "hex({})", lambda v: _hex(v.encode())),
    Way("String", pa.binary(), st.binary(max_size=200) | LENGTHS.map(b"\0".__mul__), "hex({})", lambda v: _hex(v)),
    Way("String", pa.large_string(), st.text(max_size=9), "hex({})", lambda value: _hex(value.encode())),
    Way(
        "Date",
        pa.date32(),
        (st.sampled_from([0, 1, 65_535]) | st.integers(0, 65_535)).map(lambda n: date(1970, 1, 1) + timedelta(days=n)),
        "toUInt16({})",
        lambda value: (value - date(1970, 1, 1)).days,
    ),
    _moment("DateTime"),
    _moment("DateTime('UTC')"),
    _moment("DateTime('Asia/Kathmandu')"),
    *(_decimal(*pair) for pair in ((1, 0), (9, 0), (9, 9), (10, 2), (18, 18), (19, 0), (38, 0), (38, 10), (38, 38))),
    Way("UUID", pa.string(), st.uuids().map(str), "toString({})", lambda value: value),
]
NAMES = [f"{way.type}-{way.arrow}" for way in WAYS]


def _hex(value: bytes) -> str:
    return value.hex().upper()


@pytest.fixture
def session(replicated_cluster: Cluster, cluster_database: str) -> Iterator[ReplicaSession]:
    endpoint = Endpoint("replica_1", "127.0.0.1", replicated_cluster.replicas[0].port)
    with ReplicaSession.open(Connection("replay_target", "127.0.0.1"), endpoint) as opened:
        yield opened


def _batch(columns: Sequence[tuple[Column, Any, list[Any]]]) -> Any:
    return pa.record_batch(
        [pa.array(values, kind) for _, kind, values in columns], [column.name for column, _, _ in columns]
    )


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
@pytest.mark.parametrize("nullable", [False, True], ids=["", "nullable"])
def test_every_value_comes_back_as_it_was(
    session: ReplicaSession, cluster_database: str, way: Way, nullable: bool
) -> None:
    name = f"Nullable({way.type})" if nullable else way.type
    table = f"{cluster_database}.v"
    session.execute(f"CREATE TABLE {table} (n UInt32, v {name}) ENGINE = Memory")
    columns = (Column("n", "UInt32"), Column("v", name))
    values = st.none() | way.values if nullable else way.values

    @SLOW
    @given(rows=st.lists(values, min_size=1, max_size=60), skipped=st.integers(0, 9))
    def round_trip(rows: list[Any], skipped: int) -> None:
        session.execute(f"TRUNCATE TABLE {table}")
        batch = _batch([(columns[0], pa.uint32(), list(range(len(rows)))), (columns[1], way.arrow, rows)])
        batch = batch.slice(min(skipped, len(rows)))
        assert fill(session, cluster_database, "v", columns, [batch]) == batch.num_rows
        found = session.query(f"SELECT {way.shows.format('v')} AS shown FROM {table} ORDER BY n")
        kept = rows[min(skipped, len(rows)) :]
        assert [row["shown"] for row in found] == [None if value is None else way.shown(value) for value in kept]

    round_trip()


def test_what_stands_under_a_null_does_not_travel(session: ReplicaSession, cluster_database: str) -> None:
    """Arrow leaves anything there; on the server it would be seen by whatever looks under the NULL."""
    table = f"{cluster_database}.v"
    session.execute(f"CREATE TABLE {table} (a Nullable(Int64), b Nullable(Decimal(9, 2))) ENGINE = Memory")
    validity = pa.py_buffer(b"\x02")
    integers = pa.Array.from_buffers(pa.int64(), 2, [validity, pa.py_buffer(struct.pack("<qq", 77, 5))])
    decimals = pa.Array.from_buffers(
        pa.decimal128(9, 2), 2, [validity, pa.py_buffer(struct.pack("<qqqq", 99, 0, 5, 0))]
    )
    columns = (Column("a", "Nullable(Int64)"), Column("b", "Nullable(Decimal(9, 2))"))
    fill(session, cluster_database, "v", columns, [pa.record_batch([integers, decimals], ["a", "b"])])
    rows = session.query(f"SELECT assumeNotNull(a) AS a, assumeNotNull(b) AS b FROM {table}")
    assert [tuple(row.values()) for row in rows] == [(0, Decimal("0.00")), (5, Decimal("0.05"))]


@pytest.mark.parametrize(
    ("type_name", "array"),
    [
        ("Date", lambda: pa.array([65_536], pa.int32()).view(pa.date32())),
        ("Date", lambda: pa.array([-1], pa.int32()).view(pa.date32())),
        ("DateTime('UTC')", lambda: pa.array([2**32], pa.int64()).view(pa.timestamp("s", "UTC"))),
        ("DateTime", lambda: pa.array([-1], pa.int64()).view(pa.timestamp("s", "UTC"))),
        ("UUID", lambda: pa.array(["61f0c404-5cb3-11e7-907b-a6006ad3dba"])),
        ("UUID", lambda: pa.array(["61F0c404-5cb3-11e7-907b-a6006ad3dbaz"])),
    ],
)
def test_a_value_that_the_type_does_not_hold_is_refused_and_never_shown(
    session: ReplicaSession, cluster_database: str, type_name: str, array: Callable[[], Any]
) -> None:
    session.execute(f"CREATE TABLE {cluster_database}.v (v {type_name}) ENGINE = Memory")
    with pytest.raises(EngineFailed) as caught:
        fill(session, cluster_database, "v", (Column("v", type_name),), [pa.record_batch([array()], ["v"])])
    assert caught.value.code is ErrorCode.VALUE_REFUSED
    assert "61" not in caught.value.what.replace("v of type", "")


def test_a_null_in_a_column_that_holds_none_is_refused(session: ReplicaSession, cluster_database: str) -> None:
    session.execute(f"CREATE TABLE {cluster_database}.v (v Int8) ENGINE = Memory")
    batch = pa.record_batch([pa.array([None], pa.int8())], ["v"])
    with pytest.raises(EngineFailed) as caught:
        fill(session, cluster_database, "v", (Column("v", "Int8"),), [batch])
    assert caught.value.code is ErrorCode.VALUE_REFUSED


def test_uuids_read_by_the_driver_are_the_same(session: ReplicaSession, cluster_database: str) -> None:
    """Not only the server's own text: the order of the halves' bytes is seen by every other client."""
    session.execute(f"CREATE TABLE {cluster_database}.v (v UUID) ENGINE = Memory")
    value = "00112233-4455-6677-8899-aabbccddeeff"
    fill(session, cluster_database, "v", (Column("v", "UUID"),), [pa.record_batch([pa.array([value])], ["v"])])
    assert session.query(f"SELECT v FROM {cluster_database}.v") == [{"v": UUID(value)}]
