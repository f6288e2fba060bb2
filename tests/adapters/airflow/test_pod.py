"""The check list of a worker's container: each thing that a container can forbid is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpone.adapters.airflow import pod as pods
from dpone.adapters.airflow.pod import GRACE_VARIABLE, Pod
from dpone.adapters.runtime.diagnosing import Finding
from dpone.adapters.runtime.settings import settings_from


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without starting processes: for what they do not decide."""
    monkeypatch.setattr(pods, "_orphan_state", lambda: None)


def checked(folder: Path, environ: dict[str, str] | None = None, **limits: str) -> dict[str, Finding]:
    for name, text in limits.items():
        (folder / name.replace("_", ".")).write_text(text + "\n")
    settings = settings_from({"DPONE_HOME": str(folder / "home"), **(environ or {})}, None)
    return {finding.check: finding for finding in Pod(settings, folder).findings()}


def test_a_roomy_container_lacks_only_what_it_cannot_see_itself(quick: None, tmp_path: Path) -> None:
    found = checked(tmp_path, pids_max="max", pids_current="12", memory_max="max")
    statuses = {name: finding.status for name, finding in found.items()}
    expected = {"grace": "warning", "processes": "ok", "memory": "ok", "shared ledger": "problem"}
    assert {name: statuses[name] for name in expected} == expected
    assert "the next pod would not know" in found["shared ledger"].text


@pytest.mark.parametrize(("said", "status"), [("30", "ok"), ("9", "problem"), ("soon", "warning")])
def test_the_grace_period_is_what_the_deployment_says(said: str, status: str, quick: None, tmp_path: Path) -> None:
    assert checked(tmp_path, {GRACE_VARIABLE: said})["grace"].status == status


def test_too_few_processes_and_too_little_memory_are_problems(quick: None, tmp_path: Path) -> None:
    found = checked(tmp_path, pids_max="100", pids_current="60", memory_max=str(512 * 1024**2))
    assert "40 more" in found["processes"].text
    assert [found[name].status for name in ("processes", "memory")] == ["problem", "problem"]


def test_an_orphan_dies_here(tmp_path: Path) -> None:
    assert checked(tmp_path)["orphans"].status in ("ok", "warning"), "a warning where nobody reaps"


def test_an_orphan_that_lives_on_is_a_problem_and_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a profile does that takes the parent-death signal away."""
    told = tmp_path / "pid"
    line = f"from pathlib import Path; import os; Path({str(told)!r}).write_text(str(os.getpid()))"
    monkeypatch.setattr(pods, "_ORPHAN", pods._ORPHAN.replace("die_with(int(sys.argv[1]))", line))
    assert "outlived" in checked(tmp_path)["orphans"].text
    deadline = time.monotonic() + 5
    while (state := pods._state(int(told.read_text()))) not in (None, "Z"):
        assert time.monotonic() < deadline, state
        time.sleep(0.02)


def test_a_ledger_out_of_reach_is_a_problem(quick: None, tmp_path: Path) -> None:
    found = checked(tmp_path, {"DPONE_LEDGER": "keepermap://nowhere/dpone"})
    assert found["shared ledger"].status == "problem"
    assert "'nowhere' is not known" in found["shared ledger"].text


def test_the_doctor_takes_the_list_along(tmp_path: Path) -> None:
    environment = {**os.environ, "DPONE_HOME": str(tmp_path), GRACE_VARIABLE: "30"}
    environment.pop("DPONE_LEDGER", None)
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dpone"), "doctor", "--worker-pod", "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = {item["check"]: item for item in json.loads(done.stdout)["result"]["items"]}
    assert {"grace", "orphans", "processes", "memory", "shared ledger", "reader"} <= set(found)
    assert (found["grace"]["status"], done.returncode) == ("ok", 2)
