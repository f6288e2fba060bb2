"""Replicas that do not hold the same rows are never taken to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from dpone.adapters.clickhouse.dialects import Dialect
from dpone.adapters.cluster.agreement import Held, held_statement, wait_for_agreement
from dpone.adapters.cluster.bounds import Bounds
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.tables import Column, TableDefinition

from .conftest import Target, platform_on

SHORT = Bounds(connect=1.0, look=2.0, statement=2.0, everywhere=5, scan=2.0, synchronise=2.0)
WIDE = (
    Column("a", "Int64"),
    Column("b", "Nullable(String)"),
    Column("c", "Nullable(Decimal(18, 2))"),
    Column("d", "UUID"),
    Column("e", "Nullable(Float64)"),
    Column("f", "Nullable(DateTime)"),
)


def differ(target: Target, first: str, second: str) -> None:
    """Two local tables of one name that hold different rows: what a replicated one would never do by itself."""
    columns = ", ".join(f"{column.name} {column.type}" for column in WIDE)
    for replica, rows in zip(target.cluster.replicas, (first, second), strict=True):
        replica.execute(f"CREATE TABLE {target.database}.t ({columns}) ENGINE = Memory")
        replica.execute(f"INSERT INTO {target.database}.t SELECT {rows}")


ROW = "{a}, {b}, CAST({c} AS Nullable(Decimal(18, 2))), toUUID('{d}'), {e}, {f}"
VALUES: dict[str, Any] = {
    "a": "1",
    "b": "'x'",
    "c": "'1.25'",
    "d": "00112233-4455-6677-8899-aabbccddeeff",
    "e": "0.5",
    "f": "toDateTime(7)",
}


def held(target: Target) -> list[Held]:
    from dpone.adapters.cluster.agreement import held as of

    found = []
    for replica in target.platform.replicas:
        with target.platform._session(replica, 5) as session:
            found.append(of(session, target.database, "t"))
    return found


@pytest.mark.parametrize(
    "change", [{"a": "2"}, {"b": "'y'"}, {"b": "NULL"}, {"c": "'1.26'"}, {"c": "NULL"}, {"e": "0.25"}, {"f": "NULL"}]
)
def test_one_value_tells_two_replicas_apart(target: Target, change: dict[str, str]) -> None:
    differ(target, ROW.format(**VALUES), ROW.format(**{**VALUES, **change}))
    first, second = held(target)
    assert first.rows == second.rows == 1
    assert first.digest != second.digest


def test_a_uuid_tells_two_replicas_apart(target: Target) -> None:
    differ(target, ROW.format(**VALUES), ROW.format(**{**VALUES, "d": VALUES["d"].replace("0011", "0012")}))
    first, second = held(target)
    assert first != second


def test_the_default_is_not_a_null(target: Target) -> None:
    differ(target, ROW.format(**{**VALUES, "b": "''"}), ROW.format(**{**VALUES, "b": "NULL"}))
    first, second = held(target)
    assert first != second


def test_equal_rows_in_another_order_are_equal(target: Target) -> None:
    other = {**VALUES, "a": "2", "b": "NULL"}
    one = f"{ROW.format(**VALUES)} UNION ALL SELECT {ROW.format(**other)}"
    two = f"{ROW.format(**other)} UNION ALL SELECT {ROW.format(**VALUES)}"
    differ(target, one, two)
    first, second = held(target)
    assert first == second


def test_a_wide_table_is_hashed_in_pieces(target: Target) -> None:
    columns = tuple(Column(f"c{number}", "Nullable(Int8)") for number in range(400))
    definition = TableDefinition((Column("k", "Int8"), *columns), "ReplicatedMergeTree", ("k",))
    candidate = target.candidate(definition)
    target.cluster.execute(f"INSERT INTO {target.database}.{candidate} (k, c399) VALUES", [(1, 5), (2, None)])
    target.platform.synchronise(target.database, candidate)
    assert held_statement("d", "t", columns, Dialect.V18).count("cityHash64") == 5


def test_rows_that_arrive_later_are_waited_for(target: Target) -> None:
    """The second replica may not fetch; once it may again, both hold the same."""
    candidate = target.candidate()
    second = target.cluster.replicas[1]
    second.execute("SYSTEM STOP FETCHES")
    try:
        target.cluster.execute(f"INSERT INTO {target.database}.{candidate} VALUES", [(1, "x")])
        assert second.execute(f"SELECT count() FROM {target.database}.{candidate}") == [(0,)]
        threading.Timer(1.0, second.execute, ["SYSTEM START FETCHES"]).start()
        target.platform.synchronise(target.database, candidate)
        assert target.platform.row_count(target.database, candidate) == {"replica_1": 1, "replica_2": 1}
    finally:
        second.execute("SYSTEM START FETCHES")


def test_rows_that_do_not_arrive_end_the_wait(target: Target) -> None:
    candidate = target.candidate()
    second = target.cluster.replicas[1]
    second.execute("SYSTEM STOP FETCHES")
    try:
        target.cluster.execute(f"INSERT INTO {target.database}.{candidate} VALUES", [(1, "x")])
        began = time.monotonic()
        with pytest.raises(EngineFailed):
            platform_on(target.cluster, SHORT).synchronise(target.database, candidate)
        assert 1.5 < time.monotonic() - began < 6
    finally:
        second.execute("SYSTEM START FETCHES")


def counts(*held: Held) -> dict[str, Callable[[], Held]]:
    def give(one: Held) -> Callable[[], Held]:
        return lambda: one

    return {f"replica_{number}": give(one) for number, one in enumerate(held, 1)}


def test_replicas_that_differ_to_the_end_are_an_error_with_their_counts() -> None:
    with pytest.raises(EngineFailed) as caught:
        wait_for_agreement({}, counts(Held(10, 1), Held(10, 2)), 0.3)
    assert caught.value.code is ErrorCode.PUBLICATION_UNKNOWN
    assert "replica_1: 10 rows, replica_2: 10 rows" in caught.value.what
    assert wait_for_agreement({}, counts(Held(10, 1), Held(10, 1)), 0.3) == Held(10, 1)
