"""An api-server and a scheduler with its LocalExecutor, on loopback, and what a person does in the web page: REST."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .deployment import Deployment

READY_SECONDS = 90.0
LOCKED_MAX = 10
ENDED = ("success", "failed", "upstream_failed", "skipped", "removed")


def await_that(what: str, holds: Callable[[], Any], seconds: float) -> Any:
    """Wait until it holds, and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.2)
    return found


@dataclass(slots=True)
class Airflow:
    """A running Airflow."""

    deployment: Deployment
    port: int
    outputs: dict[str, Path] = field(default_factory=dict)
    token: str = ""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None, root: str = "/api/v2") -> Any:
        """One request, repeated while Airflow's SQLite database is locked (its 500). Raises urllib's errors."""
        for _ in range(LOCKED_MAX):
            try:
                return self._call_once(method, path, body, root)
            except urllib.error.HTTPError as error:
                if error.code != 500:
                    raise
            time.sleep(1)
        return self._call_once(method, path, body, root)

    def _call_once(self, method: str, path: str, body: dict[str, Any] | None, root: str) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{root}{path}", method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or b"null")

    def is_ready(self) -> bool:
        """Both servers live; then this object may ask for everything."""
        try:
            health = self.call("GET", "/monitor/health")
            self.token = self.call("GET", "", root="/auth/token")["access_token"]
        except (OSError, ValueError, KeyError):
            return False
        return all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler"))

    def trigger(self, dag: str, run: str) -> None:
        self.call("POST", f"/dags/{dag}/dagRuns", {"dag_run_id": run, "logical_date": None})

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return found

    def task(self, dag: str, run: str, task: str = "load") -> dict[str, Any]:
        return next(one for one in self.tasks(dag, run) if one["task_id"] == task)

    def runs(self, dag: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"/dags/{dag}/dagRuns")["dag_runs"]
        return found

    def summary(self, dag: str, run: str) -> dict[str, Any]:
        found = self.call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances/load/xcomEntries/return_value")["value"]
        value: dict[str, Any] = json.loads(found) if isinstance(found, str) else found
        return value

    def ended(self, dag: str, run: str, seconds: float = 90) -> str:
        """The run's state, once it ended."""

        def state() -> str:
            found: str = self.call("GET", f"/dags/{dag}/dagRuns/{run}")["state"]
            return found if found in ("success", "failed") else ""

        found: str = await_that(f"{dag} {run} ends", state, seconds)
        return found

    def log(self, dag: str) -> str:
        """Everything that Airflow logged of this DAG's tasks."""
        folder = self.deployment.folder / "airflow/logs" / f"dag_id={dag}"
        return "\n".join(file.read_text(errors="replace") for file in sorted(folder.rglob("*.log")))


@contextmanager
def running(deployment: Deployment, outputs: Path) -> Iterator[Airflow]:
    """Start both servers, and end them with everything that they started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = deployment.environment(
        AIRFLOW__API__PORT=str(port),
        AIRFLOW__API__HOST="127.0.0.1",
        AIRFLOW__API__WORKERS="1",
        AIRFLOW__API_AUTH__JWT_SECRET=secrets.token_hex(16),
        AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"http://127.0.0.1:{port}/execution/",
        AIRFLOW__CORE__EXECUTOR="LocalExecutor",
        AIRFLOW__CORE__PARALLELISM="4",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS="True",
        AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME="0.3",
        AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC="2",
        AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL="1",
    )
    airflow = Airflow(deployment, port)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in ("dags reserialize", "api-server", "scheduler"):
            airflow.outputs[name] = outputs / f"{name}.txt"
            with airflow.outputs[name].open("wb") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", "airflow", *name.split()],
                    env=environment,
                    cwd=deployment.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            started.append(process)
            if name == "dags reserialize":
                assert process.wait(90) == 0, airflow.outputs[name].read_text()[-2000:]
        await_that("Airflow is ready", airflow.is_ready, READY_SECONDS)
        yield airflow
    finally:
        _end(started)


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for process in reversed(started):
        process.terminate()
    for process in reversed(started):
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
