"""ClickHouse 18.16 counts and hashes as Python and the embedded engine do, or says which type it does not have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripts.docs_reference.hashes import _VECTORS, _hash

from dpone.adapters.clickhouse import EmbeddedPlatform, observation_sql
from dpone.adapters.clickhouse.dialects import Dialect
from dpone.adapters.clickhouse.hash_sql import table_hash
from dpone.adapters.clickhouse.quoting import identifier
from dpone.adapters.sources.observing import Observer
from dpone.adapters.sources.shapes import arrow_type
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.tables import Column, Metrics, Observation, TableDefinition
from dpone.domain.types import parse_type
from tests.servers.clickhouse import ClickHouseServer

from .definition import BOUNDARIES, D, date, reference

ABSENT = ("Bool", "Date32", "DateTime64")
CARRIED = [name for name in BOUNDARIES if not name.startswith(ABSENT)]
REFUSED = [name for name in BOUNDARIES if name.startswith(ABSENT)]
DAYS = [date(1970, 1, 1), date(1970, 1, 2), date(2000, 2, 29), date(2105, 12, 31), date(2106, 1, 1), date(2106, 2, 7)]
MORE: dict[str, list[Any]] = {
    "Date": [*DAYS, date(2106, 2, 8), date(2108, 2, 29), date(2108, 12, 31), date(2149, 6, 6)],
    "Decimal(38, 0)": [D("9" * number) for number in range(18, 39)] + [D("-" + "9" * 38), D("1" + "0" * 37)],
    "Decimal(38, 10)": [D("9" * 28 + "." + "9" * 10), D("-1" + "0" * 27), D("0.0000000001"), D("-0.1")],
    "Decimal(19, 0)": [D("1234567890123456789"), D(-10), D(0)],
}


@pytest.fixture
def ask(clickhouse: ClickHouseServer) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """Run one statement and give its rows by alias."""
    import clickhouse_driver

    with clickhouse_driver.Client("127.0.0.1", clickhouse.port, client_revision=54_453) as client:

        def run(statement: str) -> list[dict[str, Any]]:
            rows, columns = client.execute(statement, with_column_types=True)
            return [dict(zip([name for name, _ in columns], row, strict=True)) for row in rows]

        yield run
    clickhouse.execute("DROP TABLE IF EXISTS hashed")


def stored(server: ClickHouseServer, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    """Create and fill ``default.hashed``; its columns have names that must be quoted."""
    columns = tuple(Column(f"c`{place}", name) for place, name in enumerate(types))
    server.execute("DROP TABLE IF EXISTS hashed")
    server.execute(
        f"CREATE TABLE hashed ({', '.join(f'{identifier(c.name)} {c.type}' for c in columns)}) ENGINE = Memory"
    )
    if rows:
        server.execute("INSERT INTO hashed VALUES", [tuple(row) for row in rows])
    return columns


def streamed(columns: Sequence[Column], rows: Sequence[Sequence[Any]], metrics: Metrics) -> Observation:
    """What a source counts of the same rows."""
    types = [arrow_type(parse_type(column.type)) for column in columns]
    binary = [
        pa.binary() if pa.types.is_string(kind) and name_is_text(column) else kind
        for kind, column in zip(types, columns, strict=True)
    ]
    arrays = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(binary)]
    observer = Observer(columns, metrics)
    observer.add(pa.RecordBatch.from_arrays(arrays, [column.name for column in columns]))
    return observer.result()


def name_is_text(column: Column) -> bool:
    return parse_type(column.type).kind == "String"


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("name", [*CARRIED, *(f"{name} " for name in MORE)])
def test_every_boundary_hashes_as_the_definition_says(
    name: str, nullable: bool, clickhouse: ClickHouseServer, ask: Callable[[str], list[dict[str, Any]]]
) -> None:
    values = [*(MORE if name.endswith(" ") else BOUNDARIES)[name.strip()], *([None] if nullable else [])]
    declared = f"Nullable({name.strip()})" if nullable else name.strip()
    rows = [[value] for value in values]
    columns = stored(clickhouse, [declared], rows)
    every = (columns[0].name,)
    metrics = Metrics(every, every, typed_hash=True)

    seen = observation_sql.observe(ask, "default", "hashed", columns, metrics, Dialect.V18)

    assert seen.typed_hash == reference([parse_type(declared)], rows)
    assert seen == streamed(columns, rows, metrics)


_ROW = (
    "Nullable(Int64)",
    "String",
    "Nullable(String)",
    "Nullable(Float64)",
    "Float32",
    "Nullable(Decimal(38, 6))",
    "Decimal(9, 3)",
    "Nullable(Date)",
)
_rows = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.binary(max_size=8),
        st.none() | st.binary(max_size=8),
        st.none() | st.floats(),
        st.floats(width=32),
        st.none() | st.decimals(D(-(10**20)), D(10**20), places=6).map(lambda d: abs(d) if d == 0 else d),
        st.decimals(D(-(10**5)), D(10**5), places=3).map(lambda d: abs(d) if d == 0 else d),
        st.none() | st.dates(date(1970, 1, 1), date(2149, 6, 6)),
    ),
    max_size=6,
)


def test_python_the_embedded_engine_and_the_old_server_agree(
    clickhouse: ClickHouseServer, ask: Callable[[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    platform = EmbeddedPlatform(tmp_path / "engine")
    number = iter(range(1000))

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_rows)
    def check(rows: list[tuple[Any, ...]]) -> None:
        columns = stored(clickhouse, _ROW, rows)
        every = tuple(column.name for column in columns)
        metrics, table = Metrics(every, every, typed_hash=True), f"t{next(number)}"
        platform.create("db", table, TableDefinition(columns))
        arrays = [
            pa.array(
                [row[place] for row in rows],
                pa.binary() if name_is_text(column) else arrow_type(parse_type(column.type)),
            )
            for place, column in enumerate(columns)
        ]
        platform.fill("db", table, columns, [pa.RecordBatch.from_arrays(arrays, list(every))])
        old = observation_sql.observe(ask, "default", "hashed", columns, metrics, Dialect.V18)
        assert old == platform.observe("db", table, columns, metrics)
        assert old == streamed(columns, rows, metrics)

    try:
        check()
    finally:
        platform.release()


@pytest.mark.parametrize("way", ["one scan", "column by column"])
def test_nulls_are_left_out_zeros_and_nans_are_one_on_the_old_server_too(
    way: str,
    clickhouse: ClickHouseServer,
    ask: Callable[[str], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if way == "column by column":
        monkeypatch.setattr(observation_sql, "DISTINCT_VALUES_MAX", 0)
    rows = [
        (0.0, math.nan, b"", None),
        (-0.0, -math.nan, b"\0", None),
        (math.nan, 1.0, b"", None),
        (-math.nan, 0.0, None, None),
        (None, -0.0, b"x", None),
    ]
    columns = stored(clickhouse, ["Nullable(Float64)", "Float32", "Nullable(String)", "Nullable(Int8)"], rows)
    f, g, s, n = (column.name for column in columns)
    seen = observation_sql.observe(ask, "default", "hashed", columns, Metrics((f, s, n), (f, g, s, n)), Dialect.V18)
    assert seen == Observation(5, {f: 1, s: 1, n: 5}, {f: 2, g: 3, s: 3, n: 0})


def test_no_rows_are_a_result(clickhouse: ClickHouseServer, ask: Callable[[str], list[dict[str, Any]]]) -> None:
    columns = stored(clickhouse, ["Nullable(Int8)"], [])
    (name,) = (column.name for column in columns)
    seen = observation_sql.observe(ask, "default", "hashed", columns, Metrics((name,), (name,), True), Dialect.V18)
    assert seen == Observation(0, {name: 0}, {name: 0}, "v1:0:0")


@pytest.mark.parametrize("name", REFUSED)
def test_a_type_that_the_server_lacks_is_unsupported_and_named(name: str) -> None:
    with pytest.raises(DponeError, match=r"Column 'a' is .*, a type that ClickHouse 18\.16 does not have") as failed:
        table_hash([Column("a", f"Nullable({name})")], Dialect.V18)
    assert failed.value.code is ErrorCode.EVIDENCE_UNSUPPORTED


VECTORS = [vector for vector in _VECTORS if not any(kind.startswith(ABSENT) for kind in vector[0])]


@pytest.mark.parametrize(("kinds", "values", "shown"), VECTORS, ids=lambda part: str(part)[:40])
def test_the_published_vectors(
    kinds: tuple[str, ...],
    values: tuple[Any, ...],
    shown: str,
    clickhouse: ClickHouseServer,
    ask: Callable[[str], list[dict[str, Any]]],
) -> None:
    row = [date(2024, 5, 1) if kind == "Date" else value for kind, value in zip(kinds, values, strict=True)]
    columns = stored(clickhouse, kinds, [row])
    seen = observation_sql.observe(ask, "default", "hashed", columns, Metrics(typed_hash=True), Dialect.V18)
    assert seen.typed_hash == f"v1:1:{_hash(kinds, values)}", shown
