"""One definition of a count, and a bound on what counting may hold."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform, observation_sql
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.tables import Column, Metrics, Observation

MakeTable = Callable[..., tuple[Column, ...]]


@pytest.fixture(params=["one scan", "column by column"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tables above the limit are counted through DISTINCT; a row limit of one makes small tables take that way."""
    if request.param == "column by column":
        monkeypatch.setattr(observation_sql, "DISTINCT_VALUES_MAX", 0)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_nulls_are_left_out_zeros_and_nans_are_one(platform: EmbeddedPlatform, table_of: MakeTable) -> None:
    types = [("f", "Nullable(Float64)"), ("g", "Float32"), ("s", "Nullable(String)"), ("n", "Nullable(Int8)")]
    rows = [
        (0.0, math.nan, b"", None),
        (-0.0, -math.nan, b"\0", None),
        (math.nan, 1.0, b"", None),
        (-math.nan, 0.0, None, None),
        (None, -0.0, b"x", None),
    ]
    columns = table_of("t", types, rows)
    seen = platform.observe("db", "t", columns, Metrics(("f", "s", "n"), ("f", "g", "s", "n")))
    assert seen == Observation(5, {"f": 1, "s": 1, "n": 5}, {"f": 2, "g": 3, "s": 3, "n": 0})


@pytest.mark.usefixtures("way")
def test_zero_rows_are_a_result(platform: EmbeddedPlatform, table_of: MakeTable) -> None:
    columns = table_of("t", [("a", "Nullable(Int8)")])
    seen = platform.observe("db", "t", columns, Metrics(("a",), ("a",), typed_hash=True))
    assert seen == Observation(0, {"a": 0}, {"a": 0}, "v1:0:0")


@pytest.mark.parametrize("kind", ["Int64", "String"])
def test_more_values_than_the_limit_are_refused_and_the_limit_itself_is_not(
    kind: str, platform: EmbeddedPlatform, table_of: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [i if kind == "Int64" else str(i).encode() for i in range(11)]
    columns = table_of("t", [("a", kind)], [(value,) for value in values * 3])
    monkeypatch.setattr(observation_sql, "DISTINCT_VALUES_MAX", 11)
    monkeypatch.setitem(observation_sql._DISTINCT_LIMIT, "max_rows_in_distinct", 11)
    assert platform.observe("db", "t", columns, Metrics((), ("a",))).distinct_counts == {"a": 11}
    monkeypatch.setattr(observation_sql, "DISTINCT_VALUES_MAX", 10)
    monkeypatch.setitem(observation_sql._DISTINCT_LIMIT, "max_rows_in_distinct", 10)
    with pytest.raises(EngineFailed) as caught:
        platform.observe("db", "t", columns, Metrics((), ("a",)))
    assert caught.value.code is ErrorCode.EVIDENCE_UNSUPPORTED


@pytest.mark.parametrize("reply", [[], [{}], [{"row_count": 1, "x": 2}], [{"row_count": True}], [{"row_count": "1"}]])
def test_a_reply_without_exactly_what_was_asked_is_an_error(reply: list[dict[str, object]]) -> None:
    with pytest.raises(observation_sql.ReplyMalformed):
        observation_sql.observe(lambda _: reply, "db", "t", (), Metrics())


def test_an_absent_table_is_an_engine_error(platform: EmbeddedPlatform) -> None:
    with pytest.raises(EngineFailed) as caught:
        platform.row_count("db", "secret_name")
    assert caught.value.engine_code in (60, 81)
    assert "secret" not in caught.value.what
