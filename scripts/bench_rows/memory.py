"""Peak memory of a load at one, ten and thirty times the flights: beyond ten it must not grow with the rows."""

from __future__ import annotations

from collections.abc import Iterator

from .loads import flights_times, fresh, load, manifest_for
from .row import Row


def peaks(rounds: int) -> Iterator[Row]:
    """The largest process's peak at 30× ÷ at 10×."""
    ratios, one, small, large = [], [], [], []
    for _ in range(max(1, rounds // 3)):
        one.append(load(manifest_for(flights_times(1)), fresh("memory")).peak)
        small.append(load(manifest_for(flights_times(10)), fresh("memory")).peak)
        large.append(load(manifest_for(flights_times(30)), fresh("memory")).peak)
        ratios.append(large[-1] / small[-1])
    yield Row("peak memory of a load, 30× ÷ 10× the rows", "×", tuple(ratios), 1.15)
    yield Row("peak memory of a load, 1×", "MiB", tuple(one), 1024)
    yield Row("peak memory of a load, 10×", "MiB", tuple(small), 1024)
