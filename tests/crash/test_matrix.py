"""Killed with SIGKILL before and after every append and every effect, then the same command, in every scenario."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from dpone.domain.operation import Operation, State
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, engine_tables, rows_of
from tests.crash.evidence import (
    Record,
    known_tables,
    ledger_findings,
    operation_of,
    reads_again,
    record_of,
)
from tests.crash.scenarios import SCENARIOS, Scenario, matrix

CASES = [pytest.param(name, point, id=f"{name}-{point}") for name, points in matrix().items() for point in points]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_matrix_is_what_a_run_records(name: str, tmp_path: Path) -> None:
    """When this fails, the steps changed: python -m tests.crash.scenarios"""
    sandbox = Sandbox(tmp_path)
    SCENARIOS[name].prepare(sandbox)
    assert SCENARIOS[name].record(sandbox) == matrix()[name]


@pytest.mark.parametrize(("name", "point"), CASES)
def test_killed_here_the_same_command_finishes(
    name: str, point: str, sandbox_of: Callable[[Scenario], Sandbox], tmp_path: Path
) -> None:
    scenario = SCENARIOS[name]
    sandbox = sandbox_of(scenario)
    words = sandbox.words(scenario.run_id)

    killed = ended(sandbox.composed(tmp_path / "killed", f"{scenario.options}kill@{point}", words))
    assert killed.code == -signal.SIGKILL
    first = record_of(tmp_path / "killed")
    seen = engine_rows(sandbox.engine)
    assert seen in _generations(scenario), "the live table is neither the one before nor the one after"
    found = operation_of(sandbox, scenario.run_id)
    again = reads_again(found)

    finished = ended(sandbox.composed(tmp_path / "finished", f"{scenario.repeated}none", words))
    second = record_of(tmp_path / "finished")
    assert finished.code == scenario.code, finished
    assert second.source_opens == (1 if again else 0)
    _check_swaps(scenario, first, second, rerun=_begins_anew(found.operation if found else None))
    _check_tables(scenario, sandbox)
    _check_ledger(scenario, sandbox, finished)


def _generations(scenario: Scenario) -> list[object]:
    wanted = {scenario.before, scenario.after}
    return [None if generation is None else rows_of(generation) for generation in wanted]


def _begins_anew(operation: Operation | None) -> bool:
    """A finished run that is not durable loads again when it is repeated."""
    return operation is not None and operation.state is State.COMPLETE and not operation.process.sink.durable


def _check_swaps(scenario: Scenario, first: Record, second: Record, *, rerun: bool) -> None:
    """The target's name changed hands once, and was never without a table in between."""
    if first.live and second.live:
        assert first.live[-1] == second.live[0], "the target changed while no process was running"
    held = list(dict.fromkeys([*first.live, *second.live]))
    changes = [*first.live, *second.live[1 if first.live else 0 :]]
    assert changes == held, f"a table came back: {changes}"
    assert "None" not in held[1:], "there was no live table for a moment"
    published = 0 if scenario.swapped or scenario.before == scenario.after else 1
    assert len(held) - 1 == published + rerun


def _check_tables(scenario: Scenario, sandbox: Sandbox) -> None:
    assert engine_rows(sandbox.engine) == (None if scenario.after is None else rows_of(scenario.after))
    found = operation_of(sandbox, scenario.run_id)
    assert found is not None
    assert set(engine_tables(sandbox.engine)) <= known_tables(found), "a table that the ledger does not list"
    assert {live.id for live in found.slot.live.identities.values()} == {  # type: ignore[union-attr]
        engine_tables(sandbox.engine)["rows"]
    }


def _check_ledger(scenario: Scenario, sandbox: Sandbox, finished: Ended) -> None:
    assert ledger_findings(sandbox) == []
    found = operation_of(sandbox, scenario.run_id)
    assert found is not None
    assert found.slot.holder is None
    assert found.slot.guard is None
    if scenario.code == 0:
        assert found.operation.state is State.COMPLETE
        assert finished.document["passed"] is True
        return
    assert found.operation.state is State.FAILED
    assert finished.document["passed"] is False
    kept = [name for name, one in found.slot.retirements.items() if one.role.value == "candidate"]
    assert kept == [found.operation.failure.candidate]  # type: ignore[union-attr]
