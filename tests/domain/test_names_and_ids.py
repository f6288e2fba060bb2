"""Names that no two attempts share, and ids that depend on nothing but what they stand for."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone.domain.identity import identity_problem, operation_id, slot_id
from dpone.domain.limits import IDENTITY_CHARACTERS_MAX, TABLE_NAME_BYTES_MAX
from dpone.domain.names import candidate_name, is_candidate_name, name_problem, predecessor_name

from . import examples as x

GENERATIONS = (x.GENERATION, x.OTHER_GENERATION)


def test_no_two_generations_epochs_or_attempts_share_a_candidates_name() -> None:
    every = list(product(GENERATIONS, (1, 2, 11), (1, 2, 12)))
    assert len({candidate_name("t", *one) for one in every}) == len(every)


def test_only_names_that_a_swap_could_use_are_candidates() -> None:
    name = candidate_name("t", x.GENERATION, 3, 4)
    assert is_candidate_name(name, "t", x.GENERATION)
    assert not is_candidate_name(name, "t", x.OTHER_GENERATION)
    assert not is_candidate_name(predecessor_name("t", x.GENERATION), "t", x.GENERATION)
    assert not is_candidate_name("t", "t", x.GENERATION)


def test_the_longest_table_name_leaves_room_for_every_later_name() -> None:
    longest = max(size for size in range(TABLE_NAME_BYTES_MAX) if name_problem("t" * size) is None)
    assert name_problem("t" * (longest + 1)) is not None
    assert name_problem("é" * (longest // 2 + 1)) is not None
    name = candidate_name("t" * longest, x.GENERATION, 999_999, 999_999) + "_retired_999999"
    assert len(name.encode()) <= TABLE_NAME_BYTES_MAX


@pytest.mark.parametrize("field", ["dag_id", "run_id", "process", "platform_id", "database", "table"])
def test_every_part_of_the_key_makes_another_operation(field: str) -> None:
    assert operation_id(replace(x.KEY, **{field: "other"})) != operation_id(x.KEY)


@given(st.text(max_size=20), st.text(max_size=20))
def test_parts_do_not_run_into_each_other(left: str, right: str) -> None:
    one, two = replace(x.KEY, dag_id=left, run_id=right), replace(x.KEY, dag_id=left + right, run_id="")
    assert (operation_id(one) == operation_id(two)) is (one == two)


def test_the_ids_are_what_earlier_releases_computed() -> None:
    assert str(operation_id(x.KEY)) == "6081921b-585d-5614-9599-b2e9336548e4"
    assert str(slot_id(x.KEY.target)) == "6e8cdf18-14ff-5ad9-8706-eae0ac099cee"


@pytest.mark.parametrize("value", ["", " a", "a ", "a\n", "a\x00b", "\u200b", "x" * (IDENTITY_CHARACTERS_MAX + 1)])
def test_an_odd_identity_is_refused_and_never_trimmed(value: str) -> None:
    problem = identity_problem("run id", value)
    assert problem is not None
    assert "x" * 20 not in problem


@pytest.mark.parametrize("value", ["a", "scheduled__2026-01-02T00:00:00+00:00", "нощ 1", "x" * IDENTITY_CHARACTERS_MAX])
def test_an_identity_that_can_be_printed_is_taken(value: str) -> None:
    assert identity_problem("run id", value) is None
