"""The Airflow task's side of the two replay examples, with the runtime's dependencies injected. Seconds, no scheduler.

The load's process, its channel and its end are real; its ports are in memory. What a real scheduler does with it is in
``tests/integration/airflow``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

import pytest

from dpone.adapters.airflow.attempt import Try
from dpone.adapters.airflow.failures import TEXT_BYTES_MAX, is_worth_a_retry, told
from dpone.adapters.airflow.provider import get_provider_info
from dpone.adapters.airflow.results import SUMMARY_BYTES_MAX, asset_extra, summary
from dpone.adapters.program import Outcome
from dpone.adapters.program.running import Request
from dpone.domain.errors import ErrorCode
from dpone.domain.events import AttemptStarted
from dpone.domain.explain import shown
from dpone.domain.identity import Task as OfTask
from dpone.domain.operation import Operation
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger

from .injected import ROWS

EXAMPLES = Path(__file__).parents[1] / "examples"
INSTANCE = "019d2e53-7a01-7c2e-9a4b-8d6f5c3b2a10"
BATCH = (EXAMPLES / "batch/durable-replay-full-refresh.batch.yaml", "source.records")
FLOW = (EXAMPLES / "flow/durable-replay-full-refresh.flow.yaml", "refresh")
BOTH = pytest.mark.parametrize(("manifest", "selector"), [BATCH, FLOW], ids=["batch", "flow"])
PASSWORD = "pä ss/w:rd@7"


class Task:
    """Tries of one task: each a process of its own, over one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log: list[str] = []

    def attempt(
        self,
        manifest: Path = BATCH[0],
        selector: str = BATCH[1],
        *,
        behaviour: str = "obey",
        map_index: int | None = None,
        run_id: str = "scheduled__2026-03-01",
        environ: dict[str, str] | None = None,
    ) -> Try:
        request = Request(manifest, selector, "replay_demo", run_id, None, OfTask("load", map_index, 2, INSTANCE))
        worker = {"DPONE_HOME": str(self.home), **(environ or {})}
        return Try(request, worker, self.log.append, ("-m", "tests.load_child", behaviour))

    def run(self, *where: object, **how: object) -> Outcome:
        return self.attempt(*where, **how).run()  # type: ignore[arg-type]

    def attempts(self, outcome: Outcome) -> list[AttemptStarted]:
        from uuid import UUID

        ledger = open_ledger(sqlite_url(self.home / "ledger.sqlite"), create=False)
        try:
            recorded = ledger.read(UUID(outcome.operation_id))
        finally:
            ledger.close()
        return [item.event for item in recorded if isinstance(item.event, AttemptStarted)]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.chdir(Path(__file__).parents[1])
    return Task(tmp_path / "home")


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def await_that(holds: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


@BOTH
def test_the_example_runs_as_a_task(manifest: Path, selector: str, task: Task) -> None:
    outcome = task.run(manifest, selector, map_index=4)
    assert outcome.failure is None
    assert (outcome.passed, outcome.exit_code, outcome.replayed) == (True, 0, False)
    assert (outcome.dag_id, outcome.run_id, outcome.attempt) == ("replay_demo", "scheduled__2026-03-01", 1)
    assert (outcome.extracted_rows, outcome.final_rows) == (ROWS, ROWS)
    (attempt,) = task.attempts(outcome)
    recorded = (attempt.task_id, attempt.map_index, attempt.try_number, attempt.task_instance)
    assert recorded == ("load", 4, 2, INSTANCE), "recorded, never part of the identity"
    told = shown(attempt, Operation())
    assert told is not None
    assert told[2].endswith("(try 2 of its task)"), "and told to whoever asks"
    assert any("publish" in line for line in task.log), "its steps are in the task's log"


@BOTH
def test_a_cleared_task_is_the_same_operation_and_reads_nothing(manifest: Path, selector: str, task: Task) -> None:
    first = task.run(manifest, selector)
    again = task.run(manifest, selector)
    assert (again.operation_id, again.attempt, again.replayed) == (first.operation_id, 2, True)
    assert (again.core_digest, again.generation) == (first.core_digest, first.generation)
    assert again.extracted_rows == again.final_rows == 0


def test_a_new_dag_run_is_a_new_operation(task: Task) -> None:
    first, second = task.run(), task.run(run_id="scheduled__2026-03-02")
    assert second.operation_id != first.operation_id
    assert (second.passed, second.replayed) == (True, False)


def test_a_task_and_a_shell_with_the_same_ids_are_one_operation(task: Task) -> None:
    """The program's call stands for the shell: the same key, no task."""
    import dpone

    from .load_child import composed

    first = task.run()
    shell = dpone.run(
        BATCH[0],
        BATCH[1],
        dag_id="replay_demo",
        run_id="scheduled__2026-03-01",
        environ={"DPONE_HOME": str(task.home)},
        composer=lambda settings, process: composed(settings, process, "obey"),
    )
    assert (shell.operation_id, shell.replayed, shell.attempt) == (first.operation_id, True, 2)
    assert [attempt.task_id for attempt in task.attempts(shell)] == ["load", None]


def test_the_summary_is_bounded_and_the_asset_event_names_the_load(task: Task) -> None:
    import json

    outcome = task.run()
    short = summary(outcome)
    assert len(json.dumps(short).encode()) < SUMMARY_BYTES_MAX
    assert "acceptance" not in json.dumps(short), "the evidence stays in the ledger"
    assert (short["operation_id"], short["gates"]) == (outcome.operation_id, {"passed": 1, "evaluated": 1})
    assert asset_extra(outcome) == {
        "operation_id": outcome.operation_id,
        "core_digest": outcome.core_digest,
        "generation": outcome.generation,
    }


def test_a_connection_is_bound_when_it_is_asked_for_and_shows_nowhere(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the worker's own environment holds it."""
    monkeypatch.setenv("DPONE_CONN_REPLAY_SOURCE_HOST", "db.example")
    monkeypatch.setenv("DPONE_CONN_REPLAY_SOURCE_PASSWORD", PASSWORD)
    outcome = task.run(behaviour="leak", environ=dict(os.environ) | {"DPONE_HOME": str(task.home)})
    assert outcome.passed, outcome.failure
    log = "\n".join(task.log)
    assert "a driver says: db.example" in log
    assert PASSWORD not in log
    assert "postgresql://someone:***@host/db" in log
    for name in ("environ", "cmdline"):
        shown = (task.home / name).read_bytes()
        assert PASSWORD.encode() not in shown
        assert b"db.example" not in shown


def test_a_connection_that_nobody_knows_needs_a_person(task: Task) -> None:
    outcome = task.run(behaviour="ask")
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.exit_code) == (ErrorCode.CONNECTION_NOT_FOUND, 2)
    assert "DPONE_CONN_REPLAY_SOURCE_HOST" in outcome.failure.what
    assert not is_worth_a_retry(outcome.failure.code)


@pytest.mark.parametrize(("behaviour", "said"), [("vanish", "signal 9"), ("babble", "channel")])
def test_a_process_that_ends_without_a_word_is_tried_again(behaviour: str, said: str, task: Task) -> None:
    outcome = task.run(behaviour=behaviour)
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.EVIDENCE_INCOMPLETE
    assert said in outcome.failure.what
    assert is_worth_a_retry(outcome.failure.code)
    assert task.run().passed, "the next try continues"


@pytest.mark.parametrize(("behaviour", "patience"), [("wait", 3.0), ("ignore", 5.0)])
def test_a_killed_task_leaves_no_process_behind(behaviour: str, patience: float, task: Task) -> None:
    """As Airflow does it: a signal handler in the main thread, in the middle of the wait; twice."""
    attempt = task.attempt(behaviour=behaviour)
    took: list[float] = []

    def on_term(number: int, frame: object) -> None:
        began = time.monotonic()
        assert attempt.end()
        assert attempt.end()
        took.append(time.monotonic() - began)

    def term() -> None:
        await_that((task.home / "pid").exists)
        os.kill(os.getpid(), signal.SIGTERM)

    earlier = signal.signal(signal.SIGTERM, on_term)
    timer = Timer(0.1, term)
    timer.start()
    try:
        outcome = attempt.run()
    finally:
        timer.join()
        signal.signal(signal.SIGTERM, earlier)
    assert is_gone(int((task.home / "pid").read_text()))
    assert took[0] < patience
    assert outcome.failure is not None
    assert is_worth_a_retry(outcome.failure.code)
    assert task.run().passed, "the retry continues the operation"


def test_a_process_dies_with_the_task_that_started_it(task: Task) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.test_declarative_replay_airflow import Task; "
        "Task(Path(sys.argv[1])).run(behaviour='ignore')"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(task.home)])
    try:
        await_that((task.home / "pid").exists)
        await_that(lambda: (task.home / "pid").read_text() != "")
    finally:
        parent.kill()
        parent.wait(10)
    await_that(lambda: is_gone(int((task.home / "pid").read_text())), 5)


def test_an_execution_timeout_ends_the_process(task: Task) -> None:
    class Timeout(BaseException):
        pass

    def on_alarm(number: int, frame: object) -> None:
        raise Timeout

    earlier = signal.signal(signal.SIGALRM, on_alarm)
    attempt = task.attempt(behaviour="ignore")

    def alarm() -> None:
        await_that((task.home / "pid").exists)
        os.kill(os.getpid(), signal.SIGALRM)

    timer = Timer(0.1, alarm)
    timer.start()
    try:
        with pytest.raises(Timeout):
            attempt.run()
    finally:
        timer.join()
        signal.signal(signal.SIGALRM, earlier)
    assert is_gone(int((task.home / "pid").read_text()))


def test_mapped_siblings_for_one_target_are_refused_with_a_sentence(task: Task) -> None:
    first = task.run(map_index=0)
    sibling = task.run(map_index=1)
    assert sibling.failure is not None
    assert "Two mapped tasks of this run share one target: map indexes 0 and 1" in sibling.failure.what
    assert not is_worth_a_retry(sibling.failure.code)
    again = task.run(map_index=0)
    assert (again.operation_id, again.replayed) == (first.operation_id, True), "the first one goes on as before"


def test_mapped_siblings_of_other_processes_for_one_target_are_refused_too(task: Task, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.flow.yaml"
    renamed.write_text(FLOW[0].read_text().replace("name: refresh", "name: other"))
    assert task.run(*FLOW, map_index=0).passed
    sibling = task.run(renamed, "other", map_index=1)
    assert sibling.failure is not None
    assert "share one target" in sibling.failure.what


def test_mapped_siblings_with_targets_of_their_own_both_load(task: Task, tmp_path: Path) -> None:
    other = tmp_path / "other.flow.yaml"
    text = FLOW[0].read_text().replace("name: refresh", "name: other").replace("name: replay_records", "name: others")
    other.write_text(text)
    first, second = task.run(*FLOW, map_index=0), task.run(other, "other", map_index=1)
    assert (first.passed, second.passed) == (True, True)
    assert first.operation_id != second.operation_id


@pytest.mark.parametrize("spelling", ["one process", "two processes"])
def test_of_two_mapped_siblings_that_start_together_one_loads(spelling: str, task: Task, tmp_path: Path) -> None:
    """Both look before either has begun: the append decides, and the loser says why."""
    renamed = tmp_path / "renamed.flow.yaml"
    renamed.write_text(FLOW[0].read_text().replace("name: refresh", "name: other"))
    second = (renamed, "other") if spelling == "two processes" else FLOW
    task.home.mkdir()
    with ThreadPoolExecutor(2) as together:
        tries = [task.attempt(*where, behaviour="meet", map_index=index) for index, where in enumerate((FLOW, second))]
        outcomes = list(together.map(Try.run, tries))
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    assert len(failures) == 1
    again = task.run(*(FLOW, second)[[outcome.passed for outcome in outcomes].index(False)], map_index=7)
    assert again.failure is not None
    assert "share one target" in again.failure.what
    if spelling == "one process":
        assert "share one target" in failures[0].what


RETRIED = {
    "EVIDENCE_INCOMPLETE", "EVIDENCE_REQUIRED", "TARGET_BLOCKED", "PUBLICATION_UNKNOWN", "REPLICA_UNREACHABLE",
    "SOURCE_CHANGED", "SOURCE_UNREADABLE", "LEDGER_UNREACHABLE", "LEDGER_CONFLICT", "CONNECTION_REFUSED",
    "ENGINE_BUSY", "STORAGE_FULL", "INTERNAL",
}  # fmt: skip


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_is_either_tried_again_or_left_to_a_person(code: ErrorCode) -> None:
    assert is_worth_a_retry(code) == (code.name in RETRIED)


def test_what_is_told_ends_with_the_next_command_and_is_bounded(task: Task) -> None:
    failure = task.run(manifest=Path("missing.yaml")).failure
    assert failure is not None
    assert told(failure).startswith("DPONE_MANIFEST_INVALID: missing.yaml")
    assert "Next: " in told(failure)
    from dataclasses import replace

    assert len(told(replace(failure, errors=("ä" * 10_000,))).encode()) <= TEXT_BYTES_MAX


def test_the_entry_point_names_what_is_there() -> None:
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    points = entry_points(group="apache_airflow_provider")
    (found,) = [point for point in points if point.dist is not None and point.dist.name == "dpone-replay"]
    info = found.load()()
    assert info == get_provider_info()
    for link in info["extra-links"]:
        assert find_spec(link.rpartition(".")[0]) is not None
