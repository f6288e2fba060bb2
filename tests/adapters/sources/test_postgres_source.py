"""PostgreSQL servers: types, exact values, one snapshot, safe failures."""

from __future__ import annotations

import math
import signal
import struct
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone.adapters.connections import Connection
from dpone.adapters.sources.postgres import PostgresSource
from dpone.domain.errors import DponeError, ErrorCode, SourceFailed
from dpone.domain.tables import Column, Metrics

from ...servers.postgres import PASSWORD, PostgresServer, postgres_server
from ...servers.sessions import postgres
from .conftest import Loader, disturb

__all__ = ["postgres"]


def connected(server: PostgresServer, **rest: Any) -> Connection:
    fields = {"database": "postgres", "username": "reader", "password": PASSWORD} | rest
    return Connection("pg", "127.0.0.1", server.port, **fields)


@pytest.fixture
def table(postgres: PostgresServer) -> Iterator[str]:
    """The name of a table that is dropped afterwards."""
    yield "t"
    postgres.execute("DROP TABLE IF EXISTS t CASCADE; DROP TYPE IF EXISTS mood; DROP DOMAIN IF EXISTS whole")


def test_types_come_from_the_catalog(postgres: PostgresServer, table: str, load: Loader) -> None:
    postgres.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'héllo'); CREATE DOMAIN whole AS int8 CHECK (value > 0); "
        "CREATE TABLE t (i int2 NOT NULL, b bool, n numeric(10, 2), u uuid, y bytea, m mood, p whole, c char(4), "
        "v varchar(9), d date, ts timestamp, tz timestamptz(3), r real, f float8)"
    )
    postgres.execute(
        r"INSERT INTO t VALUES (-32768, true, 1.5, '12345678-1234-1234-1234-123456789ABC', '\x00ff', 'héllo', 5, 'x', "
        "'é', '1950-02-28', '2020-01-01 00:00:00.000001', '2020-01-01 00:00:00+02', 0.1, 0.1)"
    )
    postgres.execute("INSERT INTO t VALUES (1)")
    source = PostgresSource(connected(postgres), table, "public")
    assert [column.type for column in source.describe()] == [
        "Int16",
        "Nullable(Bool)",
        "Nullable(Decimal(10, 2))",
        "Nullable(UUID)",
        "Nullable(String)",
        "Nullable(String)",
        "Nullable(Int64)",
        "Nullable(String)",
        "Nullable(String)",
        "Nullable(Date32)",
        "Nullable(DateTime64(6))",
        "Nullable(DateTime64(6, 'UTC'))",
        "Nullable(Float32)",
        "Nullable(Float64)",
    ]
    assert load(source).rows == [
        (
            -32768,
            True,
            Decimal("1.50"),
            "12345678-1234-1234-1234-123456789abc",
            b"\0\xff",
            "héllo",
            5,
            "x",
            "é",
            date(1950, 2, 28),
            datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
            datetime(2019, 12, 31, 22, tzinfo=UTC),
            pytest.approx(0.1),
            0.1,
        ),
        (1, *[None] * 13),
    ]


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.integers(low, high) | st.sampled_from((low, high))


_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2299, 12, 31, 23, 59, 59, 999_999))
VALUES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "int2": ("Int16", integers(16)),
    "int4": ("Int32", integers(32)),
    "int8": ("Int64", integers(64)),
    "float4": ("Float32", st.floats(width=32)),
    "float8": ("Float64", st.floats()),
    "bool": ("Bool", st.booleans()),
    "numeric(38,5)": ("Decimal(38, 5)", st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}e-5"))),
    "numeric(9,9)": ("Decimal(9, 9)", st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(f"{n}e-9"))),
    "numeric": ("Decimal(38, 20)", st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}e-20"))),
    "text": ("String", st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)),
    "bytea": ("String", st.binary(max_size=20)),
    "uuid": ("UUID", st.uuids()),
    "date": ("Date32", st.dates(date(1900, 1, 1), date(2299, 12, 31))),
    "timestamp": ("DateTime64(6)", _MOMENTS),
    "timestamptz": ("DateTime64(6, 'UTC')", _MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
}


def inserted(server: PostgresServer, kind: str, values: list[Any]) -> None:
    import psycopg

    fields: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "user": "reader",
        "password": PASSWORD,
        "dbname": "postgres",
    }
    with psycopg.connect(**fields, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t (k int4, v {kind})".encode())
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(values)))


def same(left: Any, right: Any) -> bool:
    if isinstance(right, UUID):
        return bool(left == str(right))
    if isinstance(right, datetime):
        return bool(left == right.replace(tzinfo=UTC))
    if isinstance(right, float) and isinstance(left, float):
        return math.isnan(left) if math.isnan(right) else struct.pack("d", left) == struct.pack("d", right)
    return bool(left == right)


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_value_arrives_as_it_is(postgres: PostgresServer, table: str, load: Loader, kind: str, data: Any) -> None:
    target, strategy = VALUES[kind]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=20))
    inserted(postgres, kind, values)
    declared = (Column("k", "Int32"), Column("v", f"Nullable({target})"))
    source = PostgresSource(connected(postgres), table, declared=declared)
    arrived = [value for _, value in sorted(load(source).rows, key=lambda row: int(row[0]))]
    assert len(arrived) == len(values)
    assert all(same(left, right) for left, right in zip(arrived, values, strict=True)), (arrived, values)


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("'infinity'::date", "Date32"),
        ("'-infinity'::date", "Date32"),
        ("'2300-01-01'::date", "Date32"),
        ("'0044-03-15 BC'::date", "Date32"),
        ("'infinity'::timestamp", "DateTime64(6)"),
        ("'-infinity'::timestamp", "DateTime"),
        ("'infinity'::timestamptz", "DateTime64(6, 'UTC')"),
        ("'294276-12-31'::timestamptz", "DateTime64(6, 'UTC')"),
        ("'2020-01-01 00:00:00.5'::timestamptz", "DateTime"),
        ("'NaN'::numeric", "Decimal(38, 5)"),
        ("'Infinity'::numeric", "Decimal(38, 5)"),
        ("1.000001::numeric", "Decimal(38, 5)"),
        ("300::int4", "UInt8"),
        ("0.1::float8", "Float32"),
        ("NULL::int4", "Int32"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_its_row(
    postgres: PostgresServer, load: Loader, value: str, target: str
) -> None:
    kind = value.rsplit("::", 1)[1]
    fine = "1" if kind in ("numeric", "int4", "float8") else "'2020-01-01'"
    query = f"SELECT {fine}::{kind} AS v UNION ALL SELECT {value}"
    source = PostgresSource(connected(postgres), query=query, declared=(Column("v", target),))
    with pytest.raises(SourceFailed, match='row 2, column "v"') as failed:
        load(source)
    assert failed.value.code is ErrorCode.VALUE_REFUSED


@pytest.mark.parametrize("expression", ["1::numeric", "1::numeric(40, 2)", "'{}'::jsonb", "ARRAY[1]", "now()::time"])
def test_a_type_that_is_not_carried_names_its_column(postgres: PostgresServer, expression: str) -> None:
    with pytest.raises(SourceFailed, match=r'Column "b" of "source\.query"') as failed:
        PostgresSource(connected(postgres), query=f"SELECT 1 AS a, {expression} AS b").describe()
    assert failed.value.code is ErrorCode.MANIFEST_INVALID


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1) AS x; COMMIT; CREATE TABLE evil (a int4); SELECT * FROM (SELECT 2",
        "DELETE FROM pg_class RETURNING 1",
        "WITH gone AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM gone",
        "SELECT nothing",
        "DROP TABLE x",
        "",
    ],
)
def test_only_one_select_is_a_query(postgres: PostgresServer, query: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        PostgresSource(connected(postgres), query=query).describe()
    assert failed.value.code is ErrorCode.MANIFEST_INVALID
    assert postgres.execute("SELECT to_regclass('evil')") == [(None,)]


def test_a_function_that_writes_is_refused(postgres: PostgresServer, table: str, load: Loader) -> None:
    postgres.execute("CREATE TABLE t (a int4); CREATE SEQUENCE IF NOT EXISTS s")
    with pytest.raises(SourceFailed, match="failed while"):
        load(PostgresSource(connected(postgres), query="SELECT nextval('s') AS a"))
    postgres.execute("DROP SEQUENCE s")


def filled(server: PostgresServer, rows: int) -> None:
    server.execute(f"CREATE TABLE t AS SELECT n::int8 AS n, n::text AS s FROM generate_series(1, {rows}) AS n")


def test_writers_meanwhile_are_not_seen(postgres: PostgresServer, table: str) -> None:
    filled(postgres, 500_000)
    source = PostgresSource(connected(postgres), table)
    disturb(source, source.describe(), lambda: postgres.execute("DELETE FROM t WHERE n % 2 = 0"))
    with source.read(source.describe(), Metrics(), lambda rows, read_bytes: None) as reading:
        for number, _ in enumerate(reading):
            if number == 0:
                postgres.execute("INSERT INTO t SELECT 1, 'x' FROM generate_series(1, 1000)")
        assert reading.observation.row_count == 250_000
        assert str(reading.fingerprint["snapshot"]).count(":") == 2


def test_what_was_counted_is_what_was_read(postgres: PostgresServer, table: str, load: Loader) -> None:
    filled(postgres, 100_000)
    loaded = load(PostgresSource(connected(postgres), table), metrics=Metrics(("n",), ("s",), typed_hash=True))
    assert loaded.observation.row_count == len(loaded.rows) == 100_000
    assert loaded.observation.distinct_counts == {"s": 100_000}
    assert loaded.fingerprint["name"] == "t"


def test_the_bytes_are_bounded_while_they_stream(postgres: PostgresServer, table: str, load: Loader) -> None:
    filled(postgres, 200_000)
    with pytest.raises(SourceFailed) as failed:
        load(PostgresSource(connected(postgres), table, max_bytes=1_000_000))
    assert failed.value.code is ErrorCode.SOURCE_TOO_LARGE


def test_names_in_any_characters(postgres: PostgresServer, load: Loader) -> None:
    query = 'SELECT 1 AS "a""b", 2 AS "A {0}", \'x\' AS "s ; --" -- an end'
    assert load(PostgresSource(connected(postgres), query=query)).rows == [(1, 2, "x")]


def test_a_missing_table_and_a_wrong_password(postgres: PostgresServer) -> None:
    with pytest.raises(SourceFailed, match=r'no table "public\.nothing"'):
        PostgresSource(connected(postgres), "nothing", "public").describe()
    for rest in ({"password": "wr0ng"}, {"username": "nobody"}, {"database": "nothing"}):
        with pytest.raises(DponeError) as failed:
            PostgresSource(connected(postgres, **rest), query="SELECT 1 AS a").describe()
        assert failed.value.code is ErrorCode.CONNECTION_REFUSED
        assert "wr0ng" not in str(failed.value)
        assert str(postgres.port) not in str(failed.value)


def test_leaving_early_stops_a_long_query(postgres: PostgresServer) -> None:
    source = PostgresSource(connected(postgres), query="SELECT pg_sleep(30)::text AS a")
    start = time.monotonic()
    with source.read((Column("a", "String"),), Metrics(), lambda rows, read_bytes: None):
        time.sleep(0.3)
    assert time.monotonic() - start < 3
    left = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)%' AND pid <> pg_backend_pid()"
    end = time.monotonic() + 3
    while postgres.execute(f"{left} AND state = 'active'") != [(0,)]:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_server_that_dies_while_it_is_read() -> None:
    with postgres_server() as server:
        query = "SELECT n, repeat('x', 100) AS s FROM generate_series(1, 10000000) AS n"
        source = PostgresSource(connected(server), query=query)
        columns = (Column("n", "Int32"), Column("s", "String"))
        with pytest.raises(SourceFailed, match="was lost while") as failed:
            disturb(source, columns, lambda: server.process.send_signal(signal.SIGQUIT))
    assert failed.value.code is ErrorCode.SOURCE_UNREADABLE


def test_the_days_before_1970_of_a_zone_do_not_shift(postgres: PostgresServer, load: Loader) -> None:
    query = "SELECT '1969-12-31 23:59:59.999999+00'::timestamptz AS a"
    source = PostgresSource(connected(postgres), query=query, declared=(Column("a", "DateTime64(6, 'Asia/Tokyo')"),))
    assert load(source).rows == [(datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1),)]
