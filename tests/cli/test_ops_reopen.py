"""``dpone ops reopen``: a finished operation loads anew by a person's decision, its old history kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpone.domain.operation import State
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, rows_of
from tests.crash.evidence import ledger_findings, operation_of, record_of

REVIEW = ("--reviewed-by", "Ada", "--reason", "the source was corrected")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Run r1 completed; the source has rows of generation 2 since."""
    made = Sandbox(tmp_path)
    made.write_rows(rows_of(1))
    made.write_manifest()
    assert made.run("r1").code == 0
    made.write_rows(rows_of(2))
    return made


def identity(sandbox: Sandbox, run_id: str = "r1") -> str:
    found = operation_of(sandbox, run_id)
    assert found is not None
    return str(found.stream)


def reopen(sandbox: Sandbox, run_id: str = "r1", *rest: str) -> Ended:
    return sandbox.dpone("ops", "reopen", identity(sandbox, run_id), *REVIEW, *rest, "--format", "json")


def test_a_completed_operation_loads_anew(sandbox: Sandbox) -> None:
    before = operation_of(sandbox, "r1")
    done = reopen(sandbox)
    assert done.code == 0, done
    again = reopen(sandbox)
    assert (again.code, again.result["changes"]) == (0, [])
    run = sandbox.run("r1")
    assert (run.code, run.result["extracted_rows"]) == (0, 301), run
    told = sandbox.dpone("ops", "explain", identity(sandbox)).out
    assert "Ada reopened it: the source was corrected" in told
    assert "interrupted" not in told
    assert engine_rows(sandbox.engine) == rows_of(2)
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert before is not None
    assert found.events[: len(before.events)] == before.events
    assert (found.operation.incarnation, found.operation.state) == (2, State.COMPLETE)
    assert ledger_findings(sandbox) == []


def test_a_retired_operation_loads_anew(sandbox: Sandbox) -> None:
    killed = ended(sandbox.composed(sandbox.folder / "died", "kill@swap#1:after", sandbox.words("r2")))
    assert killed.code == -9
    operation = identity(sandbox, "r2")
    sure = ("--evidence", "tried", "--yes", operation, "--format", "json")
    assert sandbox.dpone("ops", "retire", operation, *REVIEW, *sure).code == 0
    assert reopen(sandbox, "r2").code == 0
    sandbox.write_rows(rows_of(3))
    assert sandbox.run("r2").code == 0
    assert engine_rows(sandbox.engine) == rows_of(3)
    assert ledger_findings(sandbox) == []


def test_killed_in_the_append_it_is_repeated(sandbox: Sandbox) -> None:
    words = ["ops", "reopen", identity(sandbox), *REVIEW, "--format", "json"]
    killed = ended(
        sandbox.composed(
            sandbox.folder / "k", "kill@append OperationReopened+AttemptStarted+SlotClaimed#1:after", words
        )
    )
    assert killed.code == -9, record_of(sandbox.folder / "k").lines
    again = reopen(sandbox)
    assert (again.code, again.result["changes"]) == (0, [])


def test_a_target_that_another_run_holds_is_not_taken(sandbox: Sandbox) -> None:
    killed = ended(sandbox.composed(sandbox.folder / "died", "kill@swap#1:after", sandbox.words("r2")))
    assert killed.code == -9
    blocked = reopen(sandbox)
    assert (blocked.code, blocked.result["error_code"]) == (1, "DPONE_REPLAY_TARGET_BLOCKED")
    unfinished = reopen(sandbox, "r2")
    assert (unfinished.code, unfinished.details["next"]) == (2, f"dpone ops resume {identity(sandbox, 'r2')}")


def test_a_held_target_is_not_taken(sandbox: Sandbox) -> None:
    assert sandbox.dpone("ops", "hold", "db.rows", *REVIEW).code == 0
    blocked = reopen(sandbox)
    assert (blocked.code, blocked.result["error_code"]) == (1, "DPONE_REPLAY_TARGET_BLOCKED")
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert found.operation.state is State.COMPLETE
