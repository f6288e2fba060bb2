"""``dpone ops resume``: the same as repeating the command, from the ledger alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpone.domain.operation import State
from tests.cli.sandbox import Sandbox, ended, engine_rows, rows_of
from tests.crash.evidence import ledger_findings, operation_of, record_of


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Rows of generation 1, a manifest, nothing published."""
    made = Sandbox(tmp_path)
    made.write_rows(rows_of(1))
    made.write_manifest()
    return made


def died(sandbox: Sandbox, point: str, run_id: str = "r1") -> str:
    """A run that was killed there; its operation's id."""
    killed = ended(sandbox.composed(sandbox.folder / "died.txt", f"kill@{point}", sandbox.words(run_id)))
    assert killed.code == -9, killed
    found = operation_of(sandbox, run_id)
    assert found is not None
    return str(found.stream)


@pytest.mark.parametrize("point", ["swap#1:before", "swap#1:after", "observe-target#1:after"])
def test_a_run_that_died_is_resumed_without_its_manifest(sandbox: Sandbox, point: str) -> None:
    operation = died(sandbox, point)
    sandbox.manifest.unlink()
    sandbox.source.unlink()
    resumed = sandbox.dpone("ops", "resume", operation[:8], "--format", "json")
    assert resumed.code == 0, resumed
    assert resumed.document["passed"] is True
    assert (resumed.document["dag_id"], resumed.document["run_id"]) == ("d", "r1")
    assert (resumed.result["extracted_rows"], resumed.document["attempts"]) == (0, 2)
    assert "manifest" not in resumed.document
    assert engine_rows(sandbox.engine) == rows_of(1)
    assert ledger_findings(sandbox) == []


def test_a_completed_run_is_validated(sandbox: Sandbox) -> None:
    run = sandbox.run()
    resumed = sandbox.dpone("ops", "resume", run.details["operation_id"])
    assert resumed.code == 0, resumed
    assert resumed.out.startswith("Nothing was read, inserted or published")


def test_a_relative_source_that_must_be_read_needs_the_manifest(sandbox: Sandbox) -> None:
    operation = died(sandbox, "fill#1:middle")
    resumed = sandbox.dpone("ops", "resume", operation, "--format", "json")
    assert resumed.code == 2, resumed
    assert "relative to the manifest" in resumed.result["errors"][0]
    assert resumed.details["next"] == "dpone run MANIFEST --dag-id d --run-id r1"
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert found.operation.state is State.ADMITTED, "a missing manifest is no failure of the load"
    again = sandbox.run()
    assert again.code == 0, again


def test_an_absolute_source_is_read_again(sandbox: Sandbox) -> None:
    sandbox.write_manifest(source={"path": str(sandbox.source)})
    operation = died(sandbox, "fill#1:middle")
    sandbox.manifest.unlink()
    resumed = sandbox.dpone("ops", "resume", operation, "--format", "json")
    assert resumed.code == 0, resumed
    assert engine_rows(sandbox.engine) == rows_of(1)


def test_another_home_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    run = sandbox.run()
    other = Sandbox(tmp_path / "other", {"DPONE_LEDGER": f"sqlite:///{sandbox.ledger}"})
    refused = other.dpone("ops", "resume", run.details["operation_id"], "--format", "json")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")
    assert not other.home.exists()


def test_an_unknown_operation_is_refused_in_one_document(sandbox: Sandbox) -> None:
    sandbox.run()
    refused = sandbox.dpone("ops", "resume", "00000000", "--format", "json")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")


def test_what_a_message_says_next_is_the_resumption(sandbox: Sandbox) -> None:
    operation = died(sandbox, "swap#1:after")
    sandbox.environment["DPONE_LEDGER"] = f"sqlite:///{sandbox.ledger}"
    resumed = ended(
        sandbox.composed(sandbox.folder / "deaf.txt", "deaf,none", ["ops", "resume", operation, "--format", "json"])
    )
    assert resumed.code == 1, resumed
    assert resumed.details["next"] == f"dpone ops resume {operation} --ledger sqlite:///{sandbox.ledger}"
    assert record_of(sandbox.folder / "deaf.txt").source_opens == 0
