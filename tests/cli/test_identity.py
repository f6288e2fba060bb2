"""Whose run it is, what may differ between two commands of it, and who may take a target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpone.adapters.runtime.settings import identity_from
from dpone.domain.identity import Task
from tests.cli.sandbox import ROWS_GATE, Ended, Sandbox, ended, engine_rows, rows_of
from tests.cli.waiting import await_line
from tests.crash.evidence import ledger_findings, operation_of, record_of

TOO_MANY = {"id": "many", "type": "min_rows", "rows": 10_000}


@pytest.mark.parametrize(
    ("environment", "options", "dag_id", "run_id"),
    [
        ({"DPONE_DAG_ID": "env", "DPONE_RUN_ID": "e1"}, ["--dag-id", "opt", "--run-id", "o1"], "opt", "o1"),
        ({"DPONE_DAG_ID": "env"}, ["--run-id", "o1"], "manual", "o1"),
        ({"DPONE_DAG_ID": "env", "DPONE_RUN_ID": "e1", "AIRFLOW_CTX_DAG_ID": "air"}, [], "env", "e1"),
        ({"DPONE_RUN_ID": "e1", "AIRFLOW_CTX_DAG_ID": "air"}, [], "manual", "e1"),
        ({"AIRFLOW_CTX_DAG_ID": "air", "AIRFLOW_CTX_DAG_RUN_ID": "a1"}, [], "air", "a1"),
    ],
)
def test_all_parts_come_from_one_origin(
    sandbox: Sandbox, environment: dict[str, str], options: list[str], dag_id: str, run_id: str
) -> None:
    sandbox.environment.update(environment)
    done = sandbox.dpone("run", str(sandbox.manifest), *options, "--format", "json")
    assert (done.code, done.document["dag_id"], done.document["run_id"]) == (0, dag_id, run_id)


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, ["--dag-id", "alone"]),
        ({}, ["--run-id", ""]),
        ({}, ["--run-id", "x" * 251]),
        ({}, ["--run-id", "a\nb"]),
        ({"DPONE_DAG_ID": "alone", "AIRFLOW_CTX_DAG_ID": "air", "AIRFLOW_CTX_DAG_RUN_ID": "a1"}, []),
    ],
)
def test_a_part_that_is_missing_or_refused_is_never_mended(
    sandbox: Sandbox, environment: dict[str, str], options: list[str]
) -> None:
    sandbox.environment.update(environment)
    refused = sandbox.dpone("run", str(sandbox.manifest), *options, "--format", "json")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")
    assert not sandbox.ledger.exists()


def test_another_configuration_is_a_conflict_that_names_the_fields(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    sandbox.write_manifest(
        gates=[ROWS_GATE, {"id": "few", "type": "min_rows", "rows": 1}], source={"options": {"skip_rows": 0}}
    )
    refused = sandbox.run("r1")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REPLAY_IDENTITY_CONFLICT")
    assert "quality.gates" in refused.result["errors"][0]
    assert "source" not in refused.result["errors"][0], "an explicitly written default is no difference"
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert found.operation.attempt == 1, "a refusal appends nothing"


def test_a_conflict_while_it_is_under_way(sandbox: Sandbox) -> None:
    _killed(sandbox, "append CapsuleWritten#1:after")
    sandbox.write_manifest(acceptance={"mode": "warn_only"})
    refused = sandbox.run("r1")
    assert refused.result["error_code"] == "DPONE_REPLAY_IDENTITY_CONFLICT"
    assert "quality.acceptance.mode" in refused.result["errors"][0]
    sandbox.write_manifest()
    assert sandbox.run("r1").code == 0


def test_after_a_failure_before_dispatch_the_mended_manifest_is_taken(sandbox: Sandbox) -> None:
    sandbox.write_manifest(gates=[TOO_MANY])
    assert sandbox.run("r1").code == 1
    sandbox.write_manifest()
    assert sandbox.run("r1").code == 0
    shown = sandbox.dpone("ops", "explain", _operation(sandbox), "--format", "json")
    reopened = [line for line in shown.result["timeline"] if line["title"] == "reopened"]
    assert "quality.gates" in reopened[0]["text"]


def test_a_dispatched_holder_blocks_everybody_else(sandbox: Sandbox) -> None:
    _killed(sandbox, "swap#1:before")
    for blocked in (sandbox.run("r2"), sandbox.dpone(*sandbox.words("r1", "other_dag"))):
        assert (blocked.code, blocked.result["error_code"]) == (1, "DPONE_REPLAY_TARGET_BLOCKED")
        said = blocked.result["errors"][0]
        assert _operation(sandbox)[:8] in said
        assert "DISPATCHED" in said
        assert "run r1" in said
        assert blocked.details["next"] == f"dpone ops explain {_operation(sandbox)}"
        assert blocked.details["holder"]["state"] == "DISPATCHED"
    assert sandbox.run("r1").code == 0
    assert sandbox.run("r2").code == 0


def test_another_dag_is_blocked_also_before_dispatch(sandbox: Sandbox) -> None:
    _killed(sandbox, "append CapsuleWritten#1:after")
    blocked = sandbox.dpone(*sandbox.words("r1", "other_dag"))
    assert blocked.result["error_code"] == "DPONE_REPLAY_TARGET_BLOCKED"
    assert "PREPARED" in blocked.result["errors"][0]


def test_a_later_run_displaces_a_holder_that_never_dispatched(sandbox: Sandbox) -> None:
    _killed(sandbox, "append CapsuleWritten#1:after")
    sandbox.write_rows(rows_of(2))
    assert sandbox.run("r2").code == 0
    assert engine_rows(sandbox.engine) == rows_of(2)
    ended_for_good = sandbox.run("r1")
    assert (ended_for_good.code, ended_for_good.result["error_code"]) == (1, "DPONE_REPLAY_RETIRED")
    listed = sandbox.dpone("ops", "list", "--format", "json").result
    assert [item["state"] for item in listed["items"]] == ["RETIRED", "COMPLETE"]
    assert listed["leftovers"] == []


def test_a_completed_run_after_a_successor_is_a_mismatch_that_names_it(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    assert sandbox.run("r2").code == 0
    late = sandbox.run("r1")
    assert (late.code, late.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_MISMATCH")
    assert late.details["successor"]["run_id"] == "r2"


@pytest.mark.parametrize("round_", range(4))
def test_two_processes_with_one_identity_never_publish_twice(sandbox: Sandbox, round_: int) -> None:
    records = [sandbox.folder / f"record{number}" for number in range(2)]
    processes = [sandbox.composed(record, "none", sandbox.words()) for record in records]
    finished = [ended(process) for process in processes]
    allowed = {None, "DPONE_REPLAY_SUPERSEDED", "DPONE_ENGINE_BUSY", "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE"}
    for one in finished:
        assert one.result["error_code"] in allowed, one
    assert sandbox.run("r1").code == 0
    _check_one_publication(sandbox, records)


def test_a_frozen_process_finds_itself_superseded(sandbox: Sandbox) -> None:
    """It had let go of the engine's folder to observe the target; a second attempt finished meanwhile."""
    records = [sandbox.folder / "frozen", sandbox.folder / "second"]
    frozen = sandbox.composed(records[0], "freeze@observe-target#1:before", sandbox.words())
    await_line(records[0], "point observe-target#1:before")
    second = ended(sandbox.composed(records[1], "none", sandbox.words()))
    assert second.code == 0
    assert second.document["attempts"] == 2
    frozen.send_signal(18)
    late = ended(frozen)
    assert (late.code, late.result["error_code"]) == (1, "DPONE_REPLAY_SUPERSEDED")
    _check_one_publication(sandbox, records)


def _check_one_publication(sandbox: Sandbox, records: list[Path]) -> None:
    found = operation_of(sandbox, "r1")
    assert found is not None
    events = [type(event).__name__ for event in found.events]
    assert events.count("CommitProven") == 1
    assert events.count("OperationCompleted") == 1
    assert sum(record_of(record).swaps_sent for record in records) == 1
    assert ledger_findings(sandbox) == []
    assert engine_rows(sandbox.engine) == rows_of(1)


def _killed(sandbox: Sandbox, point: str) -> Ended:
    killed = ended(sandbox.composed(sandbox.folder / "killed", f"kill@{point}", sandbox.words()))
    assert killed.code == -9, killed
    return killed


def _operation(sandbox: Sandbox, run_id: str = "r1") -> str:
    listed = json.loads(sandbox.dpone("ops", "list", "--format", "json").out)["result"]["items"]
    return next(str(item["operation_id"]) for item in listed if item["run_id"] == run_id)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-1", -1),
        ("999999999", 999_999_999),
        ("1000000000", None),
        ("--5", None),
        ("9" * 5_000, None),
        ("٣", None),
    ],
)
def test_a_schedulers_numbers_are_recorded_or_left_out(text: str, number: int | None) -> None:
    environ = {"AIRFLOW_CTX_TASK_ID": "load", "AIRFLOW_CTX_TRY_NUMBER": text, "DPONE_MAP_INDEX": text}
    assert identity_from(environ, "d", "r").task == Task("load", number, number)
