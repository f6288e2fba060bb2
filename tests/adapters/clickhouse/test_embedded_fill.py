"""Rows on their way in: exactly once, or an error."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform, filling
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.tables import Column, TableDefinition

pa = pytest.importorskip("pyarrow")

COLUMNS = (Column("a", "Int64"), Column("b", "Nullable(String)"))


class _Stopped(BaseException):
    pass


@pytest.fixture
def target(platform: EmbeddedPlatform) -> EmbeddedPlatform:
    platform.create("db", "t", TableDefinition(COLUMNS))
    return platform


def _batch(rows: int, start: int = 0) -> Any:
    return pa.record_batch(
        [pa.array(range(start, start + rows), pa.int64()), pa.array(["x"] * rows, pa.string())], ["a", "b"]
    )


def test_no_batches_and_empty_batches_are_zero_rows(target: EmbeddedPlatform) -> None:
    target.fill("db", "t", COLUMNS, [])
    target.fill("db", "t", COLUMNS, [_batch(0), _batch(0)])
    assert target.row_count("db", "t") == {"embedded": 0}


def test_equal_batches_are_not_deduplicated(target: EmbeddedPlatform) -> None:
    target.fill("db", "t", COLUMNS, [_batch(1000)] * 30)
    assert target.row_count("db", "t") == {"embedded": 30_000}


def test_sliced_and_chunked_batches_arrive_whole(target: EmbeddedPlatform) -> None:
    target.fill("db", "t", COLUMNS, [_batch(1000).slice(1, 10), _batch(3, 7)])
    assert target.row_count("db", "t") == {"embedded": 13}


def test_the_producers_error_comes_back_and_the_platform_stays_usable(target: EmbeddedPlatform) -> None:
    def produce() -> Iterator[Any]:
        yield _batch(10)
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        target.fill("db", "t", COLUMNS, produce())
    target.create("db", "u", TableDefinition(COLUMNS))
    target.fill("db", "u", COLUMNS, [_batch(5)])
    assert target.row_count("db", "u") == {"embedded": 5}


def test_a_missing_table_is_an_engine_error(target: EmbeddedPlatform) -> None:
    with pytest.raises(EngineFailed) as caught:
        target.fill("db", "absent", COLUMNS, (_batch(70_000) for _ in range(20)))
    assert caught.value.engine_code == 60
    assert target.row_count("db", "t") == {"embedded": 0}


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (pa.record_batch([pa.array([1]), pa.array(["x"])], ["b", "a"]), "declared order"),
        (pa.record_batch([pa.array([1.5]), pa.array(["x"])], ["a", "b"]), "Arrow double"),
        (pa.record_batch([pa.array([2**31], pa.uint64()), pa.array(["x"])], ["a", "b"]), "Arrow uint64"),
    ],
)
def test_arrow_types_that_the_engine_would_cast_are_refused(target: EmbeddedPlatform, batch: Any, words: str) -> None:
    with pytest.raises(EngineFailed, match=words):
        target.fill("db", "t", COLUMNS, [batch])
    assert target.row_count("db", "t") == {"embedded": 0}


def test_what_the_engine_cannot_read_half_way_is_its_error(platform: EmbeddedPlatform) -> None:
    column = Column("id", "UUID")
    platform.create("db", "u", TableDefinition((column,)))
    good, bad = "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "no such thing"
    batches = (pa.record_batch([pa.array([text] * 70_000)], ["id"]) for text in (*[good] * 5, bad, *[good] * 5))
    with pytest.raises(EngineFailed) as caught:
        platform.fill("db", "u", (column,), batches)
    assert caught.value.engine_code == 376
    platform.fill("db", "u", (column,), [pa.record_batch([pa.array([good])], ["id"])])


_CANCELLED = """
import gc, sys
from pathlib import Path
import pyarrow as pa
from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.domain.tables import Column, TableDefinition
platform = EmbeddedPlatform(Path(sys.argv[1]))
platform.create("db", "t", TableDefinition((Column("a", "Int64"),)))
def batches():
    for _ in range(5):
        yield pa.record_batch([pa.array(range(1000), pa.int64())], ["a"])
    raise RuntimeError("the producer's")
try:
    platform.fill("db", "t", (Column("a", "Int64"),), batches())
except RuntimeError as error:
    print(error)
platform.release()
gc.collect()
"""


def test_a_cancelled_load_says_nothing_of_its_own(tmp_path: Path) -> None:
    """Development mode reports what fails in finalizers, as later Pythons always do."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", _CANCELLED, str(tmp_path / "engine")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("the producer's\n", "")


def test_no_part_is_merged_while_a_table_is_loaded_but_once_the_folder_is_opened_again(
    platform: EmbeddedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a load slowed down for their number, as the engine does to let merges catch up."""
    monkeypatch.setitem(filling._SETTINGS, "min_insert_block_size_rows", 1000)
    platform.create("db", "t", TableDefinition(COLUMNS, order_by=("a",)))
    platform._run("bounding", "ALTER TABLE db.t MODIFY SETTING parts_to_delay_insert = 90")
    platform.fill("db", "t", COLUMNS, [_batch(1000, start) for start in range(0, 100_000, 1000)])
    time.sleep(1)
    assert _parts(platform) == 100
    delayed = "SELECT 1 AS one FROM system.events WHERE event = 'DelayedInserts'"
    assert platform._asking("looking", lambda query: query(delayed)) == []
    platform.release()
    deadline = time.monotonic() + 30
    while _parts(platform) >= 100 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _parts(platform) < 100
    assert platform.row_count("db", "t") == {"embedded": 100_000}


def _parts(platform: EmbeddedPlatform) -> int:
    statement = "SELECT toUInt32(count()) AS parts FROM system.parts WHERE table = 't' AND active"
    (found,) = platform._asking("looking", lambda query: query(statement))
    return int(found["parts"])


def test_where_the_order_of_parts_matters_it_is_that_of_the_rows(
    platform: EmbeddedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replacing engine keeps, of rows with one key, that of the latest part."""
    monkeypatch.setitem(filling._SETTINGS, "min_insert_block_size_rows", 5000)
    platform.create("db", "r", TableDefinition(COLUMNS, "ReplacingMergeTree", order_by=("a",)))
    platform._run("stopping", "SYSTEM STOP MERGES")
    platform.fill("db", "r", COLUMNS, [_batch(5000, start) for start in range(0, 500_000, 5000)])
    statement = "SELECT min(a) AS first FROM db.r GROUP BY _part ORDER BY toUInt32(splitByChar('_', _part)[-3])"
    parts = platform._asking("looking", lambda query: [int(row["first"]) for row in query(statement)])
    assert parts == list(range(0, 500_000, 5000))


def test_a_batch_of_other_types_than_the_first_is_refused(target: EmbeddedPlatform) -> None:
    other = _batch(3).cast(pa.schema([("a", pa.int64()), ("b", pa.large_string())]))
    with pytest.raises(EngineFailed, match="schema than the batches before"):
        target.fill("db", "t", COLUMNS, [_batch(3), other])
    assert target.row_count("db", "t") == {"embedded": 0}


def test_a_null_does_not_become_a_default(target: EmbeddedPlatform) -> None:
    batch = pa.record_batch([pa.array([1, None]), pa.array(["x", None])], ["a", "b"])
    with pytest.raises(EngineFailed) as caught:
        target.fill("db", "t", COLUMNS, [batch])
    assert caught.value.code is ErrorCode.VALUE_REFUSED


def test_a_signal_ends_the_wait_of_a_load_and_stops_it(target: EmbeddedPlatform) -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _Stopped

    def endless() -> Iterator[Any]:
        while True:
            yield _batch(65_536)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    started = time.monotonic()
    try:
        with pytest.raises(_Stopped):
            target.fill("db", "t", COLUMNS, endless())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 3
    assert target.row_count("db", "t")["embedded"] >= 0


def test_batches_are_produced_while_earlier_ones_are_inserted(
    target: EmbeddedPlatform, batch_of: Callable[..., Any]
) -> None:
    taken: list[int] = []

    def produce() -> Iterator[Any]:
        for number in range(20):
            taken.append(number)
            yield batch_of(COLUMNS, [(number, b"x")])

    target.fill("db", "t", COLUMNS, produce())
    assert len(taken) == 20
    assert target.row_count("db", "t") == {"embedded": 20}
