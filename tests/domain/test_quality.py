"""Gates at their very limits."""

from __future__ import annotations

from typing import Any

import pytest

from dpone.domain.quality import GATES, GateResult, all_passed, evaluate
from dpone.domain.tables import Observation


def rows(mode: str, value: str, source: int, staged: int) -> bool:
    parameters = {"tolerance": {"mode": mode, "value": value}}
    gate = "row_count_reconciliation"
    return evaluate("g", gate, "error", parameters, Observation(source), Observation(staged)).passed


@pytest.mark.parametrize(
    ("mode", "value", "source", "staged", "passes"),
    [
        ("absolute", "0", 10, 10, True),
        ("absolute", "0", 10, 9, False),
        ("absolute", "0", 10, 11, False),
        ("absolute", "1", 10, 9, True),
        ("absolute", "1", 10, 8, False),
        ("absolute", "0", 0, 0, True),
        ("percent", "10", 10, 9, True),
        ("percent", "10", 10, 11, True),
        ("percent", "9.999999999999999999999999999", 10, 9, False),
        ("percent", "100", 0, 0, True),
        ("percent", "100", 0, 1, False),
        ("percent", "0.1", 1000, 999, True),
        ("percent", "0.1", 999, 998, False),
        ("percent", "0.3", 1000, 997, True),  # 0.3 as a binary fraction would allow less than three rows
        ("absolute", "0", 2**53 - 1, 2**53 - 2, False),
    ],
)
def test_row_counts_reconcile(mode: str, value: str, source: int, staged: int, passes: bool) -> None:
    assert rows(mode, value, source, staged) is passes


@pytest.mark.parametrize(("least", "staged", "passes"), [(1, 1, True), (1, 0, False), (0, 0, True), (5, 4, False)])
def test_min_rows_counts_the_candidate(least: int, staged: int, passes: bool) -> None:
    result = evaluate("g", "min_rows", "error", {"rows": least}, Observation(99), Observation(staged))
    assert result.passed is passes
    assert result.observed == {"staged": staged}


@pytest.mark.parametrize(
    ("source", "staged", "passes"),
    [("v1:1:5", "v1:1:5", True), ("v1:1:5", "v1:1:6", False), (None, None, False), ("v1:0:0", None, False)],
)
def test_a_hash_that_was_not_taken_reconciles_with_nothing(source: Any, staged: Any, passes: bool) -> None:
    seen = Observation(1, typed_hash=source), Observation(1, typed_hash=staged)
    assert evaluate("g", "typed_hash_reconciliation", "error", {}, *seen).passed is passes


def verdict(severity: str, passed: bool) -> GateResult:
    return GateResult("g", "min_rows", 1, severity, {}, {}, passed)


def test_a_warning_fails_nothing_and_an_error_everything() -> None:
    assert all_passed(())
    assert all_passed((verdict("warning", False), verdict("error", True)))
    assert not all_passed((verdict("error", True), verdict("error", False)))


def test_the_closed_table_knows_each_gate_by_its_own_name() -> None:
    assert all(name == gate.type for name, gate in GATES.items())
