"""A real api-server, scheduler and LocalExecutor: what happens to a load when a person or a machine interferes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .deployment import RECORDS, deployed
from .servers import Airflow, await_that, running

PASSWORD = "Zw3&t/Pass+wörd"
RUN = "scheduler_run"


@pytest.fixture(scope="module")
def airflow(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Its own deployment: no other test's runs in it. All DAGs that need nobody are started at once."""
    own = deployed(tmp_path_factory.mktemp("scheduler"))
    with running(own, tmp_path_factory.mktemp("outputs")) as airflow:
        for dag in ("good", "killed", "marked"):
            airflow.trigger(dag, RUN)
        yield airflow


class Paused:
    """The load of a DAG that waits in the middle of its read."""

    def __init__(self, airflow: Airflow, name: str) -> None:
        self.said = airflow.deployment.dpone_home / f"{name}.reading"
        self.go = airflow.deployment.dpone_home / f"{name}.go"
        await_that(f"{name} reads", self.said.exists, 60)
        self.pids: dict[str, int] = json.loads(self.said.read_text())

    def load_is_gone(self) -> bool:
        try:
            state = Path(f"/proc/{self.pids['load']}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        return state == "Z"


def test_a_worker_that_is_killed_is_tried_again_and_continues(airflow: Airflow) -> None:
    paused = Paused(airflow, "killed")
    os.kill(paused.pids["task"], signal.SIGKILL)
    await_that("the load dies with its task", paused.load_is_gone, 5)
    paused.go.touch()
    assert airflow.ended("killed", RUN) == "success"
    load, short = airflow.task("killed", RUN), airflow.summary("killed", RUN)
    assert (load["state"], load["try_number"]) == ("success", 2)
    assert (short["attempt"], short["extracted_rows"], short["replayed"]) == (2, RECORDS, False)


def test_marking_a_running_load_as_failed_ends_it_and_clearing_continues_it(airflow: Airflow) -> None:
    paused = Paused(airflow, "marked")
    airflow.call("PATCH", f"/dags/marked/dagRuns/{RUN}/taskInstances/load", {"new_state": "failed"})
    marked = time.monotonic()
    await_that("the load is ended", paused.load_is_gone, 15)
    took = time.monotonic() - marked
    assert airflow.task("marked", RUN)["state"] == "failed"
    paused.go.touch()
    _clear(airflow, "marked")
    await_that("it is scheduled again", lambda: airflow.task("marked", RUN)["state"] != "failed", 30)
    assert airflow.ended("marked", RUN) == "success"
    assert airflow.summary("marked", RUN)["attempt"] == 2
    assert took < 15, "Airflow's next heartbeat, then at most five seconds"


def test_a_load_with_evidence_starts_its_consumer_which_asks_the_ledger(airflow: Airflow) -> None:
    assert airflow.ended("good", RUN) == "success"
    runs = await_that("the consumer runs", lambda: airflow.runs("good_consumer"), 60)
    assert airflow.ended("good_consumer", runs[0]["dag_run_id"]) == "success"
    load = airflow.summary("good", RUN)
    (event,) = airflow.call("GET", "/assets/events?source_dag_id=good")["asset_events"]
    assert event["extra"]["operation_id"] == load["operation_id"]
    link = airflow.call("GET", f"/dags/good/dagRuns/{RUN}/taskInstances/load/links")["extra_links"]["Audit page"]
    assert link.endswith(load["operation_id"])


def test_an_asset_event_made_by_hand_starts_the_consumer_which_finds_no_evidence(airflow: Airflow) -> None:
    assert airflow.ended("good", RUN) == "success"
    await_that("the consumer ran", lambda: airflow.runs("good_consumer"), 60)
    before = {run["dag_run_id"] for run in airflow.runs("good_consumer")}
    (asset,) = (one for one in airflow.call("GET", "/assets")["assets"] if one["name"] == "good_table")
    airflow.call("POST", "/assets/events", {"asset_id": asset["id"], "extra": {}})

    def new() -> list[str]:
        return [run["dag_run_id"] for run in airflow.runs("good_consumer") if run["dag_run_id"] not in before]

    (run,) = await_that("it is started by the event", new, 60)
    assert airflow.ended("good_consumer", run) == "failed"
    assert "names no operation: dpone did not emit it" in airflow.log("good_consumer")


def test_clearing_a_finished_load_is_a_replay_of_the_same_operation(airflow: Airflow) -> None:
    assert airflow.ended("good", RUN) == "success"
    first = airflow.summary("good", RUN)
    before = airflow.task("good", RUN)["try_number"]
    _clear(airflow, "good")
    await_that("it ran again", lambda: airflow.task("good", RUN)["try_number"] > before, 60)
    assert airflow.ended("good", RUN) == "success"
    again = airflow.summary("good", RUN)
    assert (again["operation_id"], again["generation"]) == (first["operation_id"], first["generation"])
    assert (again["replayed"], again["extracted_rows"], again["attempt"]) == (True, 0, 2)


def test_a_gate_that_does_not_pass_starts_nothing_downstream(airflow: Airflow) -> None:
    airflow.trigger("poor", RUN)
    assert airflow.ended("poor", RUN) == "failed"
    states = {task["task_id"]: (task["state"], task["try_number"]) for task in airflow.tasks("poor", RUN)}
    assert states.pop("load") == ("failed", 1)
    assert set(states.values()) == {("upstream_failed", 0)}
    assert airflow.call("GET", "/assets/events?source_dag_id=poor")["asset_events"] == []
    assert airflow.runs("poor_consumer") == []


def test_mapped_tasks_load_side_by_side(airflow: Airflow) -> None:
    airflow.trigger("mapped", RUN)
    assert airflow.ended("mapped", RUN) == "success"
    assert [task["state"] for task in airflow.tasks("mapped", RUN)] == ["success", "success"]


def test_of_two_mapped_siblings_for_one_target_one_loads(airflow: Airflow) -> None:
    airflow.trigger("siblings", RUN)
    assert airflow.ended("siblings", RUN) == "failed"
    assert sorted(task["state"] for task in airflow.tasks("siblings", RUN)) == ["failed", "success"]
    assert "Two mapped tasks of this run share one target: map indexes 0 and 1" in airflow.log("siblings")


def test_marking_a_failed_load_as_success_starts_what_is_downstream_except_behind_a_guard(airflow: Airflow) -> None:
    """The trap that the guards are for: Airflow believes the mark, the ledger does not know it."""
    if not any(run["dag_run_id"] == RUN for run in airflow.runs("poor")):
        airflow.trigger("poor", RUN)
    assert airflow.ended("poor", RUN) == "failed"
    airflow.call("PATCH", f"/dags/poor/dagRuns/{RUN}/taskInstances/load", {"new_state": "success"})
    _clear(airflow, "poor", "after_poor", "guard", "guarded")
    await_that("it ran on", lambda: airflow.task("poor", RUN, "guard")["state"] == "failed", 60)
    assert airflow.ended("poor", RUN) == "failed"
    states = {task["task_id"]: task["state"] for task in airflow.tasks("poor", RUN)}
    assert airflow.task("poor", RUN, "after_poor")["try_number"] >= 1, "it started, without evidence"
    assert states == {"load": "success", "after_poor": "failed", "guard": "failed", "guarded": "upstream_failed"}
    assert airflow.call("GET", "/assets/events?source_dag_id=poor")["asset_events"] == []
    assert airflow.runs("poor_consumer") == []


def test_a_connection_of_airflow_reaches_the_load_and_shows_nowhere(airflow: Airflow) -> None:
    connection = {"connection_id": "replay_source", "conn_type": "clickhouse", "host": "db.example", "login": "reader"}
    airflow.call("POST", "/connections", {**connection, "password": PASSWORD})
    airflow.trigger("leaking", RUN)
    assert airflow.ended("leaking", RUN) == "success"
    assert "a driver says: db.example" in airflow.log("leaking")
    of_the_load = [airflow.deployment.dpone_home / name for name in ("environ", "cmdline")]
    files = [*airflow.outputs.values(), *of_the_load]
    shown = [airflow.log("leaking"), *(file.read_text(errors="replace") for file in files)]
    assert [text for text in shown if PASSWORD in text] == []


def _clear(airflow: Airflow, dag: str, *tasks: str) -> None:
    named = list(tasks or ("load",))
    body = {"dry_run": False, "dag_run_id": RUN, "task_ids": named, "only_failed": False, "reset_dag_runs": True}
    airflow.call("POST", f"/dags/{dag}/clearTaskInstances", body)
