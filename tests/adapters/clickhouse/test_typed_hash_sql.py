"""What the engine stores hashes to the definition's value, computed here from the values that were sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.typed_hash.definition import BOUNDARIES, D, date, reference, sent

from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.domain.tables import Column, Metrics, TableDefinition
from dpone.domain.types import parse_type


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("type_name", BOUNDARIES)
def test_every_boundary_arrives_and_hashes_exactly(
    type_name: str, nullable: bool, platform: EmbeddedPlatform, table_of: Callable[..., tuple[Column, ...]]
) -> None:
    values = [*BOUNDARIES[type_name], *([None] if nullable else [])]
    declared = f"Nullable({type_name})" if nullable else type_name
    columns = table_of("t", [("a`b", declared)], [[sent(type_name, value)] for value in values])

    seen = platform.observe("db", "t", columns, Metrics(("a`b",), typed_hash=True))

    assert seen.row_count == len(values)
    assert seen.null_counts == {"a`b": int(nullable)}
    assert seen.typed_hash == reference([parse_type(declared)], [[value] for value in values])


_ROW = ("Nullable(Int64)", "String", "Nullable(String)", "Nullable(Float64)", "Nullable(Decimal(20, 6))", "Date32")
_TWENTY_DIGITS = D("99999999999999.999999")
_rows = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.binary(max_size=8),
        st.none() | st.binary(max_size=8),
        st.none() | st.floats(),
        st.none() | st.decimals(-_TWENTY_DIGITS, _TWENTY_DIGITS, places=6).map(lambda d: d.copy_abs() if d == 0 else d),
        st.dates(date(1900, 1, 1), date(2299, 12, 31)),
    ),
    max_size=6,
)


def test_rows_hash_as_the_definition_says(tmp_path: Path, batch_of: Callable[..., Any]) -> None:
    platform = EmbeddedPlatform(tmp_path / "engine")
    columns = tuple(Column(f"c{i}", name) for i, name in enumerate(_ROW))
    number = iter(range(1000))

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_rows)
    def check(rows: list[tuple[Any, ...]]) -> None:
        name = f"t{next(number)}"
        platform.create("db", name, TableDefinition(columns))
        platform.fill("db", name, columns, [batch_of(columns, rows)])
        seen = platform.observe("db", name, columns, Metrics(typed_hash=True))
        assert seen.typed_hash == reference([parse_type(name) for name in _ROW], rows)

    try:
        check()
    finally:
        platform.release()


def test_neighbouring_cells_do_not_run_together(
    platform: EmbeddedPlatform, table_of: Callable[..., tuple[Column, ...]]
) -> None:
    types = [("a", "String"), ("b", "Nullable(String)")]
    hashes = set()
    for number, row in enumerate([(b"a", b"bc"), (b"ab", b"c"), (b"a", None), (b"aN;", b""), (b"a", b"")]):
        columns = table_of(f"t{number}", types, [row])
        hashes.add(platform.observe("db", f"t{number}", columns, Metrics(typed_hash=True)).typed_hash)
    assert len(hashes) == 5


def test_a_table_of_a_thousand_columns_is_hashed(
    platform: EmbeddedPlatform, table_of: Callable[..., tuple[Column, ...]]
) -> None:
    types = [(f"column {i}", ("Nullable(Float64)", "Decimal(18, 2)")[i % 2]) for i in range(1000)]
    row = [(1.5, D("2.50"))[i % 2] for i in range(1000)]
    columns = table_of("t", types, [row])

    seen = platform.observe("db", "t", columns, Metrics(typed_hash=True))

    assert seen.typed_hash == reference([parse_type(name) for _, name in types], [row])
