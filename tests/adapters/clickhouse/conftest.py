"""A real engine in a folder of its own, and rows to put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.adapters.clickhouse.arrow_types import arrow_names
from dpone.domain.tables import Column, TableDefinition
from dpone.domain.types import parse_type

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[EmbeddedPlatform]:
    embedded = EmbeddedPlatform(tmp_path / "engine", wait_seconds=1)
    yield embedded
    embedded.release()


@pytest.fixture
def batch_of() -> Callable[..., Any]:
    """``batch_of(columns, rows)``: rows of Python values as one Arrow batch."""
    return _batch_of


@pytest.fixture
def table_of(platform: EmbeddedPlatform) -> Callable[..., tuple[Column, ...]]:
    """``table_of(name, [(column, type), …], rows)`` creates and fills ``db.name``; gives its columns."""

    def make(name: str, types: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]] = ()) -> tuple[Column, ...]:
        columns = tuple(Column(*pair) for pair in types)
        platform.create("db", name, TableDefinition(columns))
        platform.fill("db", name, columns, [_batch_of(columns, rows)] if rows else [])
        return columns

    return make


def _batch_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Any:
    arrays = [pa.array([row[i] for row in rows], _arrow(column)) for i, column in enumerate(columns)]
    return pa.record_batch(arrays, [column.name for column in columns])


def _arrow(column: Column) -> Any:
    kind = parse_type(column.type)
    match kind.kind:
        case "String":
            return pa.binary()
        case "Decimal":
            return pa.decimal128(kind.precision, kind.scale)
        case "DateTime" | "DateTime64":
            return pa.timestamp(arrow_names(kind)[0].split("[")[1].split(",")[0], "UTC")
        case _:
            return pa.type_for_alias(arrow_names(kind)[0].split("[")[0])
