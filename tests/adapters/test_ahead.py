"""Work begun early."""

from __future__ import annotations

import threading

import pytest

from dpone.adapters.ahead import Ahead


def test_it_is_begun_at_once_and_its_result_or_its_failure_comes_when_asked_for() -> None:
    begun = threading.Event()

    def work() -> str:
        begun.set()
        return "x"

    ahead = Ahead(work)
    assert begun.wait(5)
    assert ahead.result() == "x"
    with pytest.raises(ZeroDivisionError):
        Ahead(lambda: 1 // 0).result()
