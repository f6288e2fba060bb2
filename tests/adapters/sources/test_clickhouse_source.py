"""ClickHouse servers: types, exact values, one read of one set of parts, safe failures."""

from __future__ import annotations

import math
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone.adapters.connections import Connection
from dpone.adapters.sources.clickhouse import ClickHouseSource
from dpone.domain.errors import DponeError, ErrorCode, SourceFailed
from dpone.domain.tables import Column, Metrics

from ...servers.clickhouse import PASSWORD, ClickHouseServer, clickhouse_server
from ...servers.sessions import clickhouse
from .conftest import Loader, disturb

__all__ = ["clickhouse"]


def connected(server: ClickHouseServer, **rest: Any) -> Connection:
    return Connection("replay_source", "127.0.0.1", server.port, **rest)


@pytest.fixture
def table(clickhouse: ClickHouseServer) -> Iterator[str]:
    """The name of a table that is dropped afterwards."""
    yield "t"
    clickhouse.execute("DROP TABLE IF EXISTS t")


def test_types_come_from_the_server(clickhouse: ClickHouseServer, table: str, load: Loader) -> None:
    clickhouse.execute(
        "CREATE TABLE t (i Int8, u Nullable(UInt64), f Float32, s String, x FixedString(3), "
        "nx Nullable(FixedString(2)), e Enum8('a' = -1, 'é' = 2), "
        "d Date, t DateTime('Asia/Tokyo'), n Decimal(38, 5), nn Nullable(Decimal(9, 2)), "
        "g UUID, l LowCardinality(String), m Int8 MATERIALIZED 1, o Int8 ALIAS 2) ENGINE = MergeTree ORDER BY i"
    )
    clickhouse.execute(
        r"INSERT INTO t SELECT -128, 18446744073709551615, 0.1, 'a\0é', 'a\0\0', '\0b', 'é', toDate(65535), "
        "toDateTime(4294967295), toDecimal128('-999999999999999999999999999999999.00001', 5), NULL, "
        "toUUID('12345678-1234-1234-1234-123456789abc'), 'q'"
    )
    source = ClickHouseSource(connected(clickhouse), table)
    assert [column.type for column in source.describe()] == [
        "Int8",
        "Nullable(UInt64)",
        "Float32",
        "String",
        "String",
        "Nullable(String)",
        "String",
        "Date",
        "DateTime('Asia/Tokyo')",
        "Decimal(38, 5)",
        "Nullable(Decimal(9, 2))",
        "UUID",
        "String",
    ]
    assert load(source).rows == [
        (
            -128,
            2**64 - 1,
            pytest.approx(0.1),
            "a\0é".encode(),
            b"a\0\0",
            b"\0b",
            "é",
            date(2149, 6, 6),
            datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC),
            Decimal("-999999999999999999999999999999999.00001"),
            None,
            "12345678-1234-1234-1234-123456789abc",
            b"q",
        )
    ]


def integers(bits: int, low: int) -> st.SearchStrategy[int]:
    high = 2**bits - 1 if low == 0 else 2 ** (bits - 1) - 1
    return st.integers(low, high) | st.sampled_from((low, high))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{f"Int{bits}": integers(bits, -(2 ** (bits - 1))) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": integers(bits, 0) for bits in (8, 16, 32, 64)},
    "Float32": st.floats(width=32),
    "Float64": st.floats(),
    "String": st.binary(max_size=20) | st.text(max_size=10).map(str.encode),
    "Date": st.dates(date(1970, 1, 1), date(2149, 6, 6)),
    "DateTime": st.integers(0, 2**32 - 1).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    "Decimal(9, 4)": st.decimals(-99_999, 99_999, places=4),
    "Decimal(18, 18)": st.decimals(Decimal("-0.9"), Decimal("0.9"), places=18),
    "Decimal(38, 5)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}e-5")),
    "UUID": st.uuids(),
}


def literal(kind: str, value: Any) -> str:
    """The value in SQL that this old server reads exactly."""
    if value is None:
        return f"CAST(NULL AS Nullable({kind}))"
    if kind == "String":
        return f"unhex('{value.hex()}')"
    if kind.startswith("Float"):
        raw = __import__("struct").pack("<f" if kind == "Float32" else "<d", value)
        return f"reinterpretAs{kind}(unhex('{raw.hex()}'))"
    if kind == "Date":
        return f"toDate({(value - date(1970, 1, 1)).days})"
    if kind == "DateTime":
        return f"toDateTime({int(value.timestamp())})"
    if kind.startswith("Decimal"):
        precision, scale = re.findall("[0-9]+", kind)
        width = 32 if int(precision) <= 9 else 64 if int(precision) <= 18 else 128
        return f"toDecimal{width}('{value:f}', {scale})"
    if kind == "UUID":
        return f"toUUID('{value}')"
    return f"to{kind}('{value}')"


def same(left: Any, right: Any) -> bool:
    if isinstance(right, UUID):
        return bool(left == str(right))
    if isinstance(right, float) and isinstance(left, float):
        if math.isnan(right):
            return math.isnan(left)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_value_arrives_as_it_is(clickhouse: ClickHouseServer, load: Loader, kind: str, data: Any) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=20))
    rows = " UNION ALL ".join(
        f"SELECT {number} AS k, CAST({literal(kind, value)} AS Nullable({kind})) AS v"
        for number, value in enumerate(values)
    )
    declared = (Column("k", "UInt8"), Column("v", f"Nullable({kind})"))
    source = ClickHouseSource(connected(clickhouse), query=rows, declared=declared)
    arrived = [value for _, value in sorted(load(source).rows, key=lambda row: int(row[0]))]
    assert len(arrived) == len(values)
    assert all(same(left, right) for left, right in zip(arrived, values, strict=True)), (arrived, values)


def test_a_value_that_does_not_fit_is_named_by_its_row(clickhouse: ClickHouseServer, load: Loader) -> None:
    query = "SELECT number AS n FROM (SELECT number FROM system.numbers LIMIT 300)"
    source = ClickHouseSource(connected(clickhouse), query=query, declared=(Column("n", "UInt8"),))
    with pytest.raises(SourceFailed, match='row 257, column "n"') as failed:
        load(source)
    assert failed.value.code is ErrorCode.VALUE_REFUSED


def test_a_type_that_is_not_carried_names_its_column(clickhouse: ClickHouseServer) -> None:
    source = ClickHouseSource(connected(clickhouse), query="SELECT 1 AS a, [1] AS b")
    with pytest.raises(SourceFailed, match=r'Column "b" of "source.query" is Array\(UInt8\)'):
        source.describe()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1) UNION ALL SELECT (2",
        "INSERT INTO x VALUES (1)",
        "DROP TABLE x",
        "SELECT nothing",
        "SELECT 1 FORMAT CSV",
        "",
    ],
)
def test_only_one_select_is_a_query(clickhouse: ClickHouseServer, query: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        ClickHouseSource(connected(clickhouse), query=query).describe()
    assert failed.value.code is ErrorCode.MANIFEST_INVALID


def test_names_that_look_like_aliases(clickhouse: ClickHouseServer, load: Loader) -> None:
    query = "SELECT toDate(1) AS `a b`, toDate(3) AS b, 4 AS `{0}`, 5 AS `x\\`y` -- an end"
    assert load(ClickHouseSource(connected(clickhouse), query=query)).rows == [
        (date(1970, 1, 2), date(1970, 1, 4), 4, 5)
    ]


@pytest.mark.parametrize("name", ["toUInt16(x)", "toUInt16(y)"])
def test_a_name_that_the_server_would_take_for_an_expression(clickhouse: ClickHouseServer, name: str) -> None:
    """Measured: ``toUInt16(x)`` then yields the column of that name instead of the days of ``x``."""
    source = ClickHouseSource(connected(clickhouse), query=f"SELECT toDate(2) AS `{name}`, toDate(3) AS x")
    with pytest.raises(SourceFailed, match="expression") as failed:
        source.describe()
    assert failed.value.code is ErrorCode.MANIFEST_INVALID


def filled(server: ClickHouseServer, rows: int) -> None:
    server.execute("CREATE TABLE t (n UInt64, s String) ENGINE = MergeTree ORDER BY n")
    server.execute(f"INSERT INTO t SELECT number, toString(number) FROM system.numbers LIMIT {rows}")


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t SELECT 1, 'x'",
        "ALTER TABLE t DROP PARTITION tuple()",
        "TRUNCATE TABLE t",
    ],
)
def test_parts_that_change_while_they_are_read(clickhouse: ClickHouseServer, table: str, change: str) -> None:
    filled(clickhouse, 400_000)
    source = ClickHouseSource(connected(clickhouse), table)
    with pytest.raises(SourceFailed) as failed:
        disturb(source, source.describe(), lambda: clickhouse.execute(change))
    assert failed.value.code is ErrorCode.SOURCE_CHANGED


def test_a_merge_is_not_a_change(clickhouse: ClickHouseServer, table: str) -> None:
    filled(clickhouse, 400_000)
    clickhouse.execute("INSERT INTO t SELECT number, 'x' FROM system.numbers LIMIT 5")
    source = ClickHouseSource(connected(clickhouse), table)
    disturb(source, source.describe(), lambda: clickhouse.execute("OPTIMIZE TABLE t FINAL"))
    assert clickhouse.execute("SELECT count() FROM system.parts WHERE table = 't' AND active") == [(1,)]


def test_a_small_table_that_changed_is_read_again(
    clickhouse: ClickHouseServer, table: str, load: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpone.adapters.sources.clickhouse_session import ServerSession

    filled(clickhouse, 10)
    original, changes = ServerSession.stream, [1]

    def stream(self: ServerSession, *asked: Any) -> Iterator[Any]:
        yield from original(self, *asked)
        if changes:
            clickhouse.execute(f"INSERT INTO t SELECT 10, '{changes.pop()}'")

    monkeypatch.setattr(ServerSession, "stream", stream)
    assert load(ClickHouseSource(connected(clickhouse), table)).observation.row_count == 11


def test_what_was_counted_and_what_was_read(clickhouse: ClickHouseServer, table: str, load: Loader) -> None:
    filled(clickhouse, 200_000)
    loaded = load(ClickHouseSource(connected(clickhouse), table), metrics=Metrics(("n",), ("s",), typed_hash=True))
    assert loaded.observation.row_count == 200_000
    assert loaded.observation.distinct_counts == {"s": 200_000}
    assert loaded.fingerprint["connection"] == "replay_source"
    assert loaded.fingerprint["name"] == "default.t"
    assert loaded.fingerprint["parts"] == 1


def test_the_bytes_are_bounded_while_they_stream(clickhouse: ClickHouseServer, table: str, load: Loader) -> None:
    filled(clickhouse, 400_000)
    with pytest.raises(SourceFailed) as failed:
        load(ClickHouseSource(connected(clickhouse), table, max_bytes=1_000_000))
    assert failed.value.code is ErrorCode.SOURCE_TOO_LARGE


def test_profiles_that_cut_results_are_overruled(clickhouse: ClickHouseServer, load: Loader) -> None:
    query = "SELECT number FROM system.numbers LIMIT 1000000"
    source = ClickHouseSource(connected(clickhouse, username="cutting"), query=query)
    with pytest.raises(SourceFailed, match="396"):
        load(source)


def test_a_missing_table_and_a_wrong_password(clickhouse: ClickHouseServer) -> None:
    with pytest.raises(SourceFailed, match=r'no table "default.nothing"'):
        ClickHouseSource(connected(clickhouse), "nothing").describe()
    assert ClickHouseSource(connected(clickhouse, username="reader", password=PASSWORD), query="SELECT 1").describe()
    with pytest.raises(DponeError) as failed:
        ClickHouseSource(connected(clickhouse, username="reader", password="wr0ng"), query="SELECT 1").describe()
    assert failed.value.code is ErrorCode.CONNECTION_REFUSED
    assert "wr0ng" not in str(failed.value)
    assert str(clickhouse.port) not in str(failed.value)


def test_leaving_early_stops_a_long_query(clickhouse: ClickHouseServer) -> None:
    source = ClickHouseSource(connected(clickhouse), query="SELECT sleep(3) AS a FROM system.numbers")
    start = time.monotonic()
    with source.read((Column("a", "UInt8"),), Metrics(), lambda rows, read_bytes: None):
        time.sleep(0.2)
    assert time.monotonic() - start < 2


def test_a_server_that_takes_the_connection_and_says_nothing_is_given_up() -> None:
    """As of one that is frozen: the bound for connecting holds, however long an answer may take later."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Connection("x", "127.0.0.1", silent.getsockname()[1], params={"connect_timeout": 0.3})
        start = time.monotonic()
        with pytest.raises(DponeError) as failed:
            ClickHouseSource(connection, query="SELECT 1").describe()
        assert time.monotonic() - start < 5
    assert failed.value.code is ErrorCode.CONNECTION_REFUSED


def test_a_server_that_dies_while_it_is_read() -> None:
    with clickhouse_server() as server:
        source = ClickHouseSource(connected(server), query="SELECT number AS n FROM system.numbers")
        columns = (Column("n", "UInt64"),)
        with pytest.raises(SourceFailed, match="was lost while") as failed:
            disturb(source, columns, lambda: server.process.send_signal(signal.SIGKILL))
    assert failed.value.code is ErrorCode.SOURCE_UNREADABLE


@pytest.mark.parametrize(("precision", "scale"), [(1, 0), (9, 2), (9, 9), (10, 3), (18, 0), (18, 18), (19, 2), (38, 5)])
def test_decimals_arrive_digit_by_digit(
    precision: int, scale: int, clickhouse: ClickHouseServer, table: str, load: Loader
) -> None:
    unscaled = [0, 1, -1, 10**precision - 1, 1 - 10**precision, *(n for n in (256, -256, 65_536) if precision > 5)]
    values = [Decimal(f"{number}E-{scale}") for number in unscaled]
    clickhouse.execute(
        f"CREATE TABLE t (i UInt8, n Nullable(Decimal({precision}, {scale}))) ENGINE = MergeTree ORDER BY i"
    )
    clickhouse.execute("INSERT INTO t VALUES", list(enumerate([*values, None])))
    rows = sorted(load(ClickHouseSource(connected(clickhouse), table)).rows)
    assert [value for _, value in rows] == [*values, None]


def test_a_compressed_connection_brings_the_same_rows(clickhouse: ClickHouseServer, table: str, load: Loader) -> None:
    clickhouse.execute("CREATE TABLE t (i UInt32, s Nullable(String)) ENGINE = MergeTree ORDER BY i")
    clickhouse.execute("INSERT INTO t SELECT number, if(number % 3 = 0, NULL, toString(number)) FROM numbers(150000)")
    compressed = ClickHouseSource(connected(clickhouse, params={"compression": "lz4"}), table)
    rows = sorted(load(compressed).rows)
    assert rows == [(number, None if number % 3 == 0 else str(number).encode()) for number in range(150_000)]


_READS: Final = """
import sys
from dpone.adapters.connections import Connection
from dpone.adapters.sources.clickhouse import ClickHouseSource
from dpone.domain.tables import Metrics
source = ClickHouseSource(Connection("replay_source", "127.0.0.1", int(sys.argv[1])), "t")
sys.modules["pandas"] = None
with source.read(source.describe(), Metrics(), lambda rows, read_bytes: None) as reading:
    print(sum(batch.num_rows for batch in reading))
from clickhouse_driver.columns.datecolumn import DateColumn
print(len(DateColumn.date_lut))
"""


def test_nothing_is_imported_or_built_that_no_read_needs(clickhouse: ClickHouseServer, table: str) -> None:
    """Neither pandas nor the driver's table of 146,000 days: 0.4 s of every process."""
    clickhouse.execute("CREATE TABLE t (i UInt32, s String) ENGINE = MergeTree ORDER BY i")
    clickhouse.execute("INSERT INTO t SELECT number, toString(number) FROM numbers(1000)")
    command = [sys.executable, "-c", _READS, str(clickhouse.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["1000", "1"]


def test_the_totals_of_a_query_are_no_row(clickhouse: ClickHouseServer, load: Loader) -> None:
    ten = "(SELECT number FROM system.numbers LIMIT 10)"
    query = f"SELECT number % 3 AS k, count() AS c FROM {ten} GROUP BY k WITH TOTALS"
    found = load(ClickHouseSource(connected(clickhouse), query=query))
    assert sorted(found.rows) == [(0, 4), (1, 3), (2, 3)]
    assert found.observation.row_count == 3
