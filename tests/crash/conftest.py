"""Prepared homes, made once for all workers and copied for each case."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.sandbox import Sandbox
from tests.crash.scenarios import Scenario


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Scenario], Path]:
    """The folder in which the scenario stands before its command is run."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "prepared"
    shared.mkdir(exist_ok=True)

    def folder(scenario: Scenario) -> Path:
        place, done = shared / scenario.name, shared / f"{scenario.name}.done"
        with (shared / f"{scenario.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                scenario.prepare(Sandbox(place))
                done.touch()
        return place

    return folder


@pytest.fixture
def sandbox_of(prepared: Callable[[Scenario], Path], tmp_path: Path) -> Callable[[Scenario], Sandbox]:
    """A copy of the prepared folder of one's own."""

    def make(scenario: Scenario) -> Sandbox:
        folder = tmp_path / "copy"
        shutil.copytree(prepared(scenario), folder, symlinks=True)
        return Sandbox(folder)

    return make
