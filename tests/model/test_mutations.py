"""The search finds faults: each mutation of the decisions is refuted within the examples of the short profile.

What needs a long story is searched for in a smaller world: fewer replicas, and only what such a story is made of.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from .mutations import MUTATIONS
from .refutation import SEARCH, Losses, Owner, Queue, Stranger

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_search_refutes(mutation: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.model.refutation", mutation],
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("world", [Queue, Losses, Owner, Stranger])
def test_nothing_is_refuted_where_no_rule_is_taken_away(world: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(world, settings=settings(SEARCH, max_examples=60, derandomize=True))
