"""SQLite databases: values of any class in any column, one transaction, nothing but reading."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from dpone.adapters.sources import SourceRequest, open_source
from dpone.adapters.sources.sqlite import SqliteSource
from dpone.domain.errors import ErrorCode, SourceFailed
from dpone.domain.tables import Column, Metrics

from .conftest import Loader, disturb

COLUMNS = (Column("id", "UInt32"), Column("v", "Nullable(Int64)"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    path = tmp_path / "a b?#.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INT)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
            "INSERT INTO t SELECT i, i FROM n"
        )
        yield path, connection


def test_types_are_proposed_and_every_value_is_checked(tmp_path: Path, load: Loader) -> None:
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT NOT NULL, r DOUBLE, d DATE, f BOOLEAN, b BLOB, "
            "n DECIMAL(9,2))"
        )
        connection.execute("INSERT INTO t VALUES (1, 'é', 1.5, '2020-02-29', 1, x'ff00', 2.25)")
        connection.commit()
    source = open_source(SourceRequest("sqlite", path, table="t"))
    assert [column.type for column in source.describe()] == [
        "Int64",
        "String",
        "Nullable(Float64)",
        "Nullable(Date32)",
        "Nullable(Bool)",
        "Nullable(String)",
        "Nullable(Float64)",
    ]
    assert load(source).rows == [(1, "é".encode(), 1.5, date(2020, 2, 29), True, b"\xff\0", 2.25)]


@pytest.mark.parametrize("value", ["'7'", "1.5", "x'07'", "CAST(x'ff' AS TEXT)"])
def test_a_value_of_another_class_is_named_by_its_row(
    database: tuple[Path, sqlite3.Connection], load: Loader, value: str
) -> None:
    path, connection = database
    connection.execute("CREATE TABLE u (id INTEGER, v)")
    connection.execute("INSERT INTO u SELECT id, v FROM t")
    connection.execute(f"UPDATE u SET v = {value} WHERE id = 40001")
    with pytest.raises(SourceFailed, match="row 40001, column") as failed:
        load(SqliteSource(path, "u", declared=COLUMNS))
    assert failed.value.code is ErrorCode.VALUE_REFUSED


@pytest.mark.parametrize("row", [1, 2, 40_001])
def test_text_that_is_not_utf8_is_refused(row: int, database: tuple[Path, sqlite3.Connection], load: Loader) -> None:
    path, connection = database
    connection.execute("CREATE TABLE u (s TEXT)")
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) INSERT INTO u SELECT i FROM n"
    )
    connection.execute("UPDATE u SET s = CAST(x'ff41' AS TEXT) WHERE rowid IN (?, 45000)", (row,))
    with pytest.raises(SourceFailed, match=f"row {row}, column"):
        load(SqliteSource(path, "u"))


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "PRAGMA user_version = 5",
        "ATTACH 'other.sqlite' AS o",
        "/* SELECT */ DROP TABLE t",
        "SELECT * FROM nowhere",
        "SELECT ?",
        "EXPLAIN SELECT 1",
        "",
    ],
)
def test_only_one_select_is_a_query(database: tuple[Path, sqlite3.Connection], query: str) -> None:
    path, connection = database
    with pytest.raises(SourceFailed) as failed:
        SqliteSource(path, query=query).describe()
    assert failed.value.code is ErrorCode.MANIFEST_INVALID
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (50_000,)


def test_a_query(database: tuple[Path, sqlite3.Connection], load: Loader) -> None:
    path, _ = database
    query = "-- the last two\nWITH x AS (SELECT * FROM t ORDER BY id DESC LIMIT 2) SELECT id, v AS w FROM x;"
    source = SqliteSource(path, query=query)
    assert [column.name for column in source.describe()] == ["id", "w"]
    assert load(source).rows == [(50_000, 50_000), (49_999, 49_999)]
    declared = (Column("total", "UInt64"),)
    assert load(SqliteSource(path, query="SELECT sum(v) AS total FROM t", declared=declared)).rows == [(1_250_025_000,)]
    with pytest.raises(SourceFailed, match="does not say the type"):
        SqliteSource(path, query="SELECT abs(v) || 'x' AS y, NULL AS z FROM t").describe()


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="does not exist"):
        SqliteSource(tmp_path / "none.sqlite", "t").describe()
    assert list(tmp_path.iterdir()) == []


def test_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"a,b\n1,2\n" * 1_000)
    with pytest.raises(SourceFailed) as failed:
        SqliteSource(tmp_path / "x.sqlite", "t").describe()
    assert failed.value.code is ErrorCode.SOURCE_UNREADABLE


def test_writers_beside_a_write_ahead_log_are_not_seen(database: tuple[Path, sqlite3.Connection]) -> None:
    path, connection = database
    connection.execute("PRAGMA journal_mode = WAL")
    source = SqliteSource(path, "t", declared=COLUMNS)
    with source.read(COLUMNS, Metrics(("v",)), lambda rows, read_bytes: None) as reading:
        for number, _ in enumerate(reading):
            if number == 0:
                connection.execute("UPDATE t SET v = NULL")
        assert reading.observation.null_counts == {"v": 0}
    with source.read(COLUMNS, Metrics(("v",)), lambda rows, read_bytes: None) as reading:
        assert sum(batch.num_rows for batch in reading) == 50_000
        assert reading.observation.null_counts == {"v": 50_000}


def test_a_database_that_is_replaced_while_it_is_read(database: tuple[Path, sqlite3.Connection]) -> None:
    path, _ = database
    source = SqliteSource(path, "t", declared=COLUMNS)

    def replace() -> None:
        copy = path.with_name("copy")
        copy.write_bytes(path.read_bytes())
        copy.replace(path)

    with pytest.raises(SourceFailed) as failed:
        disturb(source, COLUMNS, replace)
    assert failed.value.code is ErrorCode.SOURCE_CHANGED


def test_leaving_early_stops_a_long_query(database: tuple[Path, sqlite3.Connection]) -> None:
    path, _ = database
    query = "SELECT max(a.v * b.v) AS m FROM t AS a, t AS b"
    source = SqliteSource(path, query=query, declared=(Column("m", "Int64"),))
    start = time.monotonic()
    with source.read((Column("m", "Int64"),), Metrics(), lambda rows, read_bytes: None):
        time.sleep(0.2)
    assert time.monotonic() - start < 3


def test_settings_are_checked(tmp_path: Path) -> None:
    for request in (
        SourceRequest("sqlite", tmp_path / "x"),
        SourceRequest("sqlite", tmp_path / "x", table="t", query="SELECT 1"),
        SourceRequest("sqlite", table="t"),
        SourceRequest("sqlite", tmp_path / "x", table="t", options={"delimiter": ","}),
        SourceRequest("excel", tmp_path / "x"),
    ):
        with pytest.raises(SourceFailed) as failed:
            open_source(request)
        assert failed.value.code is ErrorCode.MANIFEST_INVALID
