"""Signals, and calls that nobody waits for any more."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.adapters.clickhouse.engine_thread import EngineThread
from dpone.domain.errors import EngineFailed
from dpone.domain.tables import Column, Metrics, TableDefinition

COLUMNS = (Column("n", "UInt64"),)


class _Stopped(BaseException):
    pass


@pytest.fixture
def alarm() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_a_signal_ends_the_wait_in_the_middle_of_a_query(platform: EmbeddedPlatform) -> None:
    platform.acquire()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.monotonic()
    with pytest.raises(_Stopped):
        platform._run("counting slowly", "SELECT sum(sleepEachRow(0.02)) FROM numbers(250) SETTINGS max_block_size = 1")
    assert time.monotonic() - started < 0.8

    with pytest.raises(EngineFailed, match="still running"):  # at once, instead of queueing behind it
        platform.observe("db", "t", COLUMNS, Metrics())
    platform.release()  # leaves it alone
    assert time.monotonic() - started < 1.0

    while platform._thread.busy:
        time.sleep(0.05)
    platform.create("db", "t", TableDefinition(COLUMNS))  # once it has ended, the engine is usable again
    assert platform.row_count("db", "t") == {"embedded": 0}


def test_errors_come_back_as_they_were_raised() -> None:
    thread = EngineThread()
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 // 0)
    assert thread.call(lambda: 7) == 7


def test_work_ahead_delays_but_never_refuses_the_next_call() -> None:
    thread = EngineThread()
    order: list[int] = []

    def slowly() -> None:
        time.sleep(0.1)
        order.append(1)

    thread.ahead(slowly)
    thread.call(lambda: order.append(2))
    assert order == [1, 2]
