"""Several replicas at once."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from dpone.adapters.cluster.abreast import abreast
from dpone.domain.errors import EngineFailed, ErrorCode


def fails(seconds: float) -> str:
    time.sleep(seconds)
    raise EngineFailed(ErrorCode.REPLICA_UNREACHABLE, f"after {seconds}")


def late(seconds: float, answer: str) -> str:
    time.sleep(seconds)
    return answer


def test_all_run_at_the_same_time_and_keep_their_order() -> None:
    meeting = threading.Barrier(3, timeout=5)

    def meet(seconds: float) -> None:
        meeting.wait()
        time.sleep(seconds)

    answers = abreast({"a": partial(meet, 0.2), "b": partial(meet, 0.1), "c": partial(meet, 0)})
    assert list(answers.all()) == ["a", "b", "c"]


def test_a_failure_takes_no_answer_away_and_the_first_one_is_raised() -> None:
    answers = abreast({"a": partial(fails, 0.2), "b": partial(late, 0, "x"), "c": partial(fails, 0)})
    assert (answers.given, list(answers.failed)) == ({"b": "x"}, ["a", "c"])
    with pytest.raises(EngineFailed, match=r"after 0\.2"):
        answers.all()


def test_a_defect_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        abreast({"a": lambda: 1 // 0, "b": lambda: 2})
