"""Rows on their way in: exactly once on every replica, or an error."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from dpone.adapters.clickhouse.dialects import Dialect
from dpone.adapters.cluster import filling
from dpone.adapters.cluster.filling import fill
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.domain.errors import EngineFailed, ErrorCode
from tests.servers.cluster import PASSWORDS

from .conftest import COLUMNS, Target

pa = pytest.importorskip("pyarrow")


def batch(rows: int, start: int = 0) -> Any:
    return pa.record_batch(
        [pa.array(range(start, start + rows), pa.int64()), pa.array(["x"] * rows, pa.string())], ["a", "b"]
    )


def both(count: int) -> dict[str, int]:
    return {"replica_1": count, "replica_2": count}


def test_no_batches_and_empty_batches_are_zero_rows(target: Target) -> None:
    candidate = target.candidate()
    target.platform.fill(target.database, candidate, COLUMNS, [])
    target.platform.fill(target.database, candidate, COLUMNS, [batch(0), batch(0)])
    target.platform.synchronise(target.database, candidate)
    assert target.platform.row_count(target.database, candidate) == both(0)


def test_equal_batches_are_not_deduplicated(target: Target) -> None:
    candidate = target.candidate()
    target.platform.fill(target.database, candidate, COLUMNS, [batch(1000)] * 30)
    target.platform.fill(target.database, candidate, COLUMNS, [batch(1000)] * 30)
    target.platform.synchronise(target.database, candidate)
    assert target.platform.row_count(target.database, candidate) == both(60_000)


def test_the_same_rows_in_a_new_generation_are_all_there(target: Target) -> None:
    for _ in range(2):
        candidate = target.candidate()
        target.platform.fill(target.database, candidate, COLUMNS, [batch(1000)])
        target.platform.synchronise(target.database, candidate)
        assert target.platform.row_count(target.database, candidate) == both(1000)


def test_more_rows_than_one_part_holds(target: Target) -> None:
    candidate = target.candidate()
    one = batch(65_536)
    target.platform.fill(target.database, candidate, COLUMNS, [one] * 20)
    target.platform.synchronise(target.database, candidate)
    assert target.platform.row_count(target.database, candidate) == both(20 * 65_536)


def test_the_producers_error_comes_back_as_it_is(target: Target) -> None:
    candidate = target.candidate()

    def produce() -> Iterator[Any]:
        yield batch(10)
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        target.platform.fill(target.database, candidate, COLUMNS, produce())
    assert target.platform.row_count(target.database, candidate)["replica_1"] in (0, 10)


def test_a_server_that_gives_up_in_the_middle_ends_the_fill_at_once(target: Target) -> None:
    """It says so before the end: the rest of the source is not read."""
    candidate = target.candidate()
    target.cluster.execute(f"ALTER TABLE {target.database}.{candidate} ADD COLUMN c Int8 MATERIALIZED throwIf(a = 5)")
    sent = []

    def produce() -> Iterator[Any]:
        for number in range(5000):
            sent.append(number)
            yield batch(10_000)

    with pytest.raises(EngineFailed) as caught:
        target.platform.fill(target.database, candidate, COLUMNS, produce())
    assert caught.value.engine_code == 395
    assert len(sent) < 1000


@pytest.mark.parametrize("compression", ["", "lz4"])
def test_what_a_server_said_before_it_closed_is_heard_though_the_next_block_cannot_be_sent(
    target: Target, compression: str
) -> None:
    """A server that gives up closes after its answer: a sender meets the closed connection before it has looked."""
    candidate = target.candidate()
    target.cluster.execute(f"ALTER TABLE {target.database}.{candidate} ADD COLUMN c Int8 MATERIALIZED throwIf(a = 5)")
    endpoint = Endpoint("replica_1", "127.0.0.1", target.cluster.replicas[0].port)
    connection = Connection(
        "replay_target",
        "127.0.0.1",
        username="dpone",
        password=PASSWORDS.dpone,
        params={"compression": compression} if compression else {},
    )
    unlike = pa.array((str(number) * 9 for number in range(3_000_000)), pa.string())
    much = pa.record_batch([pa.array(range(3_000_000), pa.int64()), unlike], ["a", "b"])

    def produce() -> Iterator[Any]:
        yield batch(1_200_000)
        time.sleep(1)
        yield much

    with ReplicaSession.open(connection, endpoint) as session, pytest.raises(EngineFailed) as caught:
        fill(session, target.database, candidate, COLUMNS, produce())
    assert caught.value.engine_code == 395


def test_a_program_that_holds_a_thousand_descriptors_can_fill_too(target: Target, many_descriptors: None) -> None:
    candidate = target.candidate()
    target.platform.fill(target.database, candidate, COLUMNS, [batch(10), batch(10, 10)])
    assert target.platform.row_count(target.database, candidate)["replica_1"] == 20


def test_a_compressed_connection_carries_the_same_rows(target: Target) -> None:
    candidate = target.candidate()
    connection = Connection(
        "replay_target",
        "127.0.0.1",
        username="dpone",
        password=PASSWORDS.dpone,
        params={"compression": "lz4"},
    )
    endpoint = Endpoint("replica_1", "127.0.0.1", target.cluster.replicas[0].port)
    with ReplicaSession.open(connection, endpoint) as session:
        fill(session, target.database, candidate, COLUMNS, [batch(70_000), batch(7, 100_000)])
    seen = target.cluster.execute(f"SELECT count(), sum(a), max(a), uniqExact(b) FROM {target.database}.{candidate}")
    assert seen == [(70_007, sum(range(70_000)) + sum(range(100_000, 100_007)), 100_006, 1)]


def test_blocks_that_carry_a_token_each_are_statements_of_their_own(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a present server, whose tokens belong to a statement; here without tokens, which this one lacks."""
    tokens = []

    def settings(dialect: Dialect, token: str) -> dict[str, int]:
        tokens.append(token)
        return {"insert_deduplicate": 0}

    monkeypatch.setattr(filling, "one_insert_takes_all_blocks", lambda dialect: False)
    monkeypatch.setattr(filling, "settings_of_an_insert", settings)
    monkeypatch.setattr(filling, "ROWS_PER_BLOCK", 25)
    candidate = target.candidate()
    batches = [batch(10, start) for start in range(0, 100, 10)]
    target.platform.fill(target.database, candidate, COLUMNS, batches)
    assert tokens == [f"{candidate}:{number}" for number in range(5)]
    parts = target.cluster.execute(
        f"SELECT count(), sum(rows) FROM system.parts WHERE database = '{target.database}' AND level = 0"
    )
    assert parts == [(5, 100)]
    assert target.cluster.execute(f"SELECT sum(a) FROM {target.database}.{candidate}") == [(sum(range(100)),)]


def test_a_table_that_is_not_there_is_an_error_before_the_source_is_read_far(target: Target) -> None:
    asked = []

    def produce() -> Iterator[Any]:
        for number in range(100):
            asked.append(number)
            yield batch(10)

    with pytest.raises(EngineFailed) as caught:
        target.platform.fill(target.database, "__dpone_t_nothing", COLUMNS, produce())
    assert caught.value.engine_code == 60
    assert asked == [0]


def test_columns_in_another_order_are_a_defect_not_a_shift(target: Target) -> None:
    candidate = target.candidate()
    with pytest.raises(EngineFailed) as caught:
        target.platform.fill(target.database, candidate, COLUMNS[::-1], [batch(1)])
    assert caught.value.code is ErrorCode.INTERNAL


class _Stopped(BaseException):
    pass


def test_a_signal_ends_a_fill_at_once(target: Target) -> None:
    candidate = target.candidate()

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stopped

    def produce() -> Iterator[Any]:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        while True:
            yield batch(65_536)

    before = signal.signal(signal.SIGALRM, stop)
    try:
        began = time.monotonic()
        with pytest.raises(_Stopped):
            target.platform.fill(target.database, candidate, COLUMNS, produce())
        assert time.monotonic() - began < 3
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_observation_is_exact(target: Target) -> None:
    from dpone.domain.tables import Metrics

    candidate = target.candidate()
    rows = pa.record_batch([pa.array([1, 1, 2, 3], pa.int64()), pa.array([None, "x", "x", None])], ["a", "b"])
    target.platform.fill(target.database, candidate, COLUMNS, [rows])
    seen = target.platform.observe(target.database, candidate, COLUMNS, Metrics(("a", "b"), ("a", "b"), True))
    assert (seen.row_count, dict(seen.null_counts), dict(seen.distinct_counts)) == (
        4,
        {"a": 0, "b": 2},
        {"a": 3, "b": 1},
    )
    assert seen.typed_hash is not None
    assert seen.typed_hash.startswith("v1:4:")
