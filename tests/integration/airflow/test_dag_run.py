"""``dag.test()``: a real metadata database, real tasks on the engine in process, no scheduler."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .deployment import RECORDS, Deployment

NAMES = ("good", "poor", "unloaded", "mapped", "siblings", "shop")


class Report:
    """What Airflow kept of all the runs, and the output of the process that ran them."""

    def __init__(self, data: dict[str, Any], output: str) -> None:
        self.data = data
        self.output = output

    def tasks(self, dag: str, task: str = "load") -> list[dict[str, Any]]:
        return [one for one in self.data["runs"][dag]["tasks"] if one["task"] == task]

    def task(self, dag: str, task: str = "load") -> dict[str, Any]:
        (one,) = self.tasks(dag, task)
        return one


@pytest.fixture(scope="module")
def report(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Report:
    file: Path = tmp_path_factory.mktemp("report") / "report.json"
    done = deployment.python("-m", "tests.integration.airflow.dag_test", str(file), *NAMES, seconds=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return Report(json.loads(file.read_text()), done.stdout + done.stderr)


def test_the_dags_are_imported_without_an_error(report: Report) -> None:
    assert report.data["import_errors"] == {}


def test_a_load_succeeds_with_a_bounded_summary_and_a_link(report: Report) -> None:
    load = report.task("good")
    assert (load["state"], load["try"]) == ("success", 1)
    short = load["xcom"]
    assert (short["dag_id"], short["run_id"]) == ("good", report.data["runs"]["good"]["run_id"])
    assert (short["attempt"], short["try_number"], len(short["ti_id"])) == (1, 1, 36)
    assert (short["extracted_rows"], short["final_rows"], short["governance"]) == (RECORDS, RECORDS, "complete")
    assert load["link"] == f"http://127.0.0.1:1/audit/operations/{short['operation_id']}"
    assert report.task("good", "consume")["xcom"] == "consumed"


def test_the_guard_finds_the_load_in_the_ledger(report: Report) -> None:
    found, loaded = report.task("good", "guard")["xcom"], report.task("good")["xcom"]
    assert {name: found[name] for name in ("operation_id", "generation", "core_digest")} == {
        name: loaded[name] for name in ("operation_id", "generation", "core_digest")
    }
    assert found["target"] == "analytics.good_records"


def test_a_guard_without_a_load_never_lets_anything_start(report: Report) -> None:
    assert report.task("unloaded", "guard")["state"] == "failed"
    assert report.task("unloaded", "after_nothing")["state"] == "upstream_failed"


def test_a_gate_that_does_not_pass_fails_at_once_and_nothing_starts(report: Report, deployment: Deployment) -> None:
    load = report.task("poor")
    assert (load["state"], load["try"], load["xcom"]) == ("failed", 1, None), "no retry can change it"
    assert report.task("poor", "after_poor")["state"] == "upstream_failed"
    assert "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED: enough (min_rows)" in report.output
    assert _count(deployment, "AttemptStarted", "poor") == 1


def test_only_a_load_with_evidence_emits_its_asset_event_once(report: Report) -> None:
    load = report.task("good")["xcom"]
    expected = {name: load[name] for name in ("operation_id", "core_digest", "generation")}
    assert report.data["events"] == [{"dag": "good", "extra": expected}]


def test_mapped_tasks_are_operations_of_their_own(report: Report, deployment: Deployment) -> None:
    tasks = report.tasks("mapped")
    assert [(task["index"], task["state"]) for task in tasks] == [(0, "success"), (1, "success")]
    assert len({task["xcom"]["operation_id"] for task in tasks}) == 2
    assert [task["xcom"]["process"] for task in tasks] == ["one", "two"]


def test_mapped_siblings_for_one_target_are_refused(report: Report) -> None:
    assert Counter(task["state"] for task in report.tasks("siblings")) == {"success": 1, "failed": 1}
    assert "Two mapped tasks of this run share one target: map indexes 0 and 1" in report.output


def test_a_flow_is_a_dag_with_one_task_a_process_in_order(report: Report) -> None:
    assert report.data["shape"]["shop"] == {"customers": [], "orders": ["customers"]}
    assert [report.task("shop", name)["state"] for name in ("customers", "orders")] == ["success", "success"]


def _count(deployment: Deployment, event: str, dag: str) -> int:
    """So many events of this kind in the operations of this DAG."""
    with sqlite3.connect(f"file:{deployment.ledger}?mode=ro", uri=True) as ledger:
        rows = [(str(row[0]), row[1], json.loads(row[2])) for row in ledger.execute(_EVENTS)]
    admitted = {
        stream for stream, topic, state in rows if "OperationAdmitted" in topic and f'"{dag}"' in json.dumps(state)
    }
    return sum(stream in admitted and event in topic for stream, topic, _ in rows)


_EVENTS = "SELECT originator_id, topic, state FROM stored_events"
