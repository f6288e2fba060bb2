"""The document: exactly one, of a fixed shape, in every case; and the exit code beside it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.cli.sandbox import ROWS_GATE, Sandbox, ended, rows_of

COUNTED = {"row_count": 300, "null_counts": {"name": 42}, "distinct_counts": {"id": 300}}


def _shape(value: Any) -> Any:
    """The document with what differs from run to run replaced by its type."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, float):
        return float
    if isinstance(value, str) and value.startswith("sha256:"):
        return "sha256"
    try:
        uuid.UUID(str(value))
    except ValueError:
        return value
    return uuid.UUID


def test_success_is_exactly_the_document_of_the_contract(sandbox: Sandbox) -> None:
    done = sandbox.run("r1")
    assert done.code == 0
    assert done.err == ""
    evidence = {
        "format": "dpone.quality.replay.v2",
        "capsule_state": "COMPLETE",
        "core_digest": "sha256",
        "replayed": False,
        "replayed_from": {"operation_id": uuid.UUID, "run_id": "r1", "load_id": uuid.UUID, "attempt": 1},
        "gates": [
            {
                "id": "rows",
                "type": "row_count_reconciliation",
                "severity": "error",
                "passed": True,
                "observed": {"source": 300, "staged": 300},
                "tolerance": {"mode": "absolute", "value": 0},
            }
        ],
        "acceptance": {"source": COUNTED, "staged": COUNTED, "target": COUNTED},
        "receipt": {"id": uuid.UUID, "generation": uuid.UUID, "accepted_by_attempt": 1},
    }
    assert _shape(done.document) == {
        "manifest": str(sandbox.manifest),
        "process": "load",
        "selector": "s.rows",
        "dag_id": "d",
        "run_id": "r1",
        "passed": True,
        "result": {
            "status": "success",
            "error_code": None,
            "errors": [],
            "extracted_rows": 300,
            "inserted_rows": 300,
            "updated_rows": 0,
            "final_rows": 300,
            "duration_seconds": float,
            "details": {"reconciliation_metrics": {"quality_replay": evidence}},
            "replay_details": {
                "operation_id": uuid.UUID,
                "target_commit": "proven",
                "governance": "complete",
                "state": "COMPLETE",
                "original": {"run_id": "r1", "load_id": uuid.UUID},
                "current": {"run_id": "r1", "attempt": 1},
            },
        },
        "attempts": 1,
    }


def test_a_replay_reads_nothing_and_accepts_a_receipt_of_its_own(sandbox: Sandbox) -> None:
    first = sandbox.run("r1").result["details"]["reconciliation_metrics"]["quality_replay"]
    sandbox.source.unlink()  # nothing is read
    again = sandbox.run("r1")
    assert (again.code, again.err) == (0, "")
    assert (again.result["extracted_rows"], again.result["inserted_rows"]) == (0, 0)
    assert again.result["errors"] == []
    assert again.document["attempts"] == 2
    evidence = again.result["details"]["reconciliation_metrics"]["quality_replay"]
    assert evidence["replayed"] is True
    assert evidence["core_digest"] == first["core_digest"]
    assert evidence["replayed_from"] == first["replayed_from"]
    assert evidence["receipt"]["id"] != first["receipt"]["id"]
    assert evidence["receipt"]["accepted_by_attempt"] == 2
    assert again.details["current"] == {"run_id": "r1", "attempt": 2}


def test_a_failing_gate(sandbox: Sandbox) -> None:
    sandbox.write_manifest(gates=[ROWS_GATE, {"id": "many", "type": "min_rows", "rows": 301}])
    failed = sandbox.run("r1")
    assert failed.code == 1
    assert failed.document["passed"] is False
    assert failed.result["status"] == "error"
    assert failed.result["error_code"] == "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED"
    assert len(failed.result["errors"]) == 1
    assert "many (min_rows): staged 300" in failed.result["errors"][0]
    assert failed.details["target_commit"] == "not_started"
    assert failed.details["governance"] == "blocked"
    assert failed.details["state"] == "FAILED"
    assert failed.details["candidate"].startswith("__dpone_rows_")
    assert "untouched" in failed.details["safe"]


def test_killed_and_recovered(sandbox: Sandbox) -> None:
    killed = ended(sandbox.composed(sandbox.folder / "killed", "kill@observe-target#1:before", sandbox.words()))
    assert (killed.code, killed.out) == (-9, "")
    done = sandbox.run("r1")
    assert done.code == 0
    assert (done.result["extracted_rows"], done.result["inserted_rows"]) == (0, 0)
    assert done.result["final_rows"] == 300
    evidence = done.result["details"]["reconciliation_metrics"]["quality_replay"]
    assert (evidence["replayed"], evidence["capsule_state"]) == (True, "COMPLETE")
    assert evidence["replayed_from"]["attempt"] == 1
    assert evidence["receipt"]["accepted_by_attempt"] == 2
    assert done.document["attempts"] == 2


def test_not_durable_has_no_evidence_and_loads_again(sandbox: Sandbox) -> None:
    sandbox.write_manifest(durable=False)
    for _ in range(2):
        done = sandbox.run("r1")
        assert done.code == 0
        assert done.result["extracted_rows"] == 300
        assert done.result["details"] == {"reconciliation_metrics": {}}


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--format", "json"],
        ["run", "x.yaml", "--no-such-option", "--format", "json"],
        ["run", "x.yaml", "--format", "xml", "--format", "json", "--format", "yaml"],
        ["--format", "json"],
        ["nonsense", "--format=json"],
        ["run", "/no/such/file.yaml", "--format", "json"],
        ["ops", "show", "--format", "json"],
        ["ops", "show", "abc", "--format", "json"],
        ["audit", "verify", "--nope", "--format", "json"],
        ["validate", "--format", "json"],
    ],
    ids=" ".join,
)
def test_a_usage_error_is_one_document_as_well(sandbox: Sandbox, words: list[str]) -> None:
    wrong = sandbox.dpone(*words)
    assert wrong.code in (1, 2)
    assert wrong.document["passed"] is False
    assert wrong.result["status"] == "error"
    assert wrong.result["error_code"].startswith("DPONE_")
    assert wrong.result["errors"]
    assert wrong.err


def test_the_last_valid_format_decides(sandbox: Sandbox) -> None:
    assert sandbox.dpone("run", "--format", "json", "--format", "text").out == ""
    valid = sandbox.dpone("validate", str(sandbox.manifest), "--format", "text", "--format", "json")
    assert valid.code == 0
    assert valid.document["result"]["items"][0]["selector"] == "s.rows"


def test_a_thousand_problems_stay_within_the_bound(sandbox: Sandbox) -> None:
    sandbox.write_manifest(sink={f"unknown_{number:04d}": 1 for number in range(1000)})
    wrong = sandbox.run()  # ended() bounds stderr
    assert wrong.code == 2
    assert wrong.result["error_code"] == "DPONE_MANIFEST_INVALID"


def test_rows_of_another_generation_replace_all_rows(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    sandbox.write_rows(rows_of(2))
    assert sandbox.run("r2").result["final_rows"] == 301
