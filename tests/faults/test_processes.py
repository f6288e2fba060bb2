"""Processes that are frozen, overtaken, short of memory or of processes, or that believe another hour: embedded engine.

What SIGKILL does at every point is the crash matrix's; SIGTERM and SIGINT are in tests/cli/test_interruptions.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpone.domain.operation import State
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, rows_of
from tests.crash.evidence import ledger_findings, operation_of, record_of

from .starving import unprivileged

STARVING = (sys.executable, "-m", "tests.faults.starving")
POINTS = (
    "append OperationAdmitted+AttemptStarted+SlotClaimed#1:before",
    "fill#1:middle",
    "observe-candidate#1:before",
    "append PublicationDispatched#1:after",
    "observe-target#1:before",
    "append ReaderGuardReleased#1:after",
)


@pytest.fixture
def second(sandbox: Sandbox) -> Sandbox:
    """One generation is live, the rows of the next one are ready."""
    assert sandbox.run("r1").code == 0
    sandbox.write_rows(rows_of(2))
    return sandbox


def starved(sandbox: Sandbox, record: Path, action: str, before: tuple[str, ...] = ()) -> Ended:
    """``dpone run`` of r2, short of something. A worker that hangs of it is ended by its budget of 60 s."""
    return ended(sandbox.start([str(record), action, *sandbox.words("r2")], (*before, *STARVING)), 90)


def check_finishes(sandbox: Sandbox, *, reads: int | None = None) -> None:
    """The same command, with nothing in its way."""
    record = sandbox.folder / "finished"
    done = ended(sandbox.composed(record, "none", sandbox.words("r2")))
    assert done.code == 0, done
    assert reads is None or record_of(record).source_opens == reads
    found = operation_of(sandbox, "r2")
    assert found is not None
    assert (found.operation.state, found.slot.holder, found.slot.guard) == (State.COMPLETE, None, None)
    assert [type(event).__name__ for event in found.events].count("CommitProven") == 1
    assert engine_rows(sandbox.engine) == rows_of(2)
    assert ledger_findings(sandbox) == []


def check_stopped(stopped: Ended) -> None:
    """It said that it does not know, and what to type."""
    assert stopped.code == 1, stopped
    assert stopped.result["error_code"] == "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE", stopped
    assert stopped.details["next"]


@pytest.mark.parametrize("mebibytes", [64, 400, 1200], ids=lambda size: f"{size} MiB")
def test_a_worker_without_memory_is_no_observation(second: Sandbox, tmp_path: Path, mebibytes: int) -> None:
    """One that is refused a thread in a bad moment hangs until its budget: then it was too slow, whatever the cause."""
    stopped = starved(second, tmp_path / "starved", f"memory:{mebibytes}")
    if "within the budget" not in stopped.result["errors"][0]:
        check_stopped(stopped)
        assert "reader gave no observation" in stopped.result["errors"][0]
    else:
        assert (stopped.code, stopped.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_UNSUPPORTED")
    assert engine_rows(second.engine) == rows_of(1)
    check_finishes(second)


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root is exempt from the limit")
@pytest.mark.parametrize("point", ["open-ledger#1:after", "append StagedObserved#1:before"])
def test_no_process_can_be_started(second: Sandbox, tmp_path: Path, point: str) -> None:
    stopped = starved(second, tmp_path / "starved", f"fork@{point}", tuple(unprivileged()))
    check_stopped(stopped)
    check_finishes(second)


@pytest.mark.parametrize(("first", "then"), [(3600, -3600), (-3600, 3600)], ids=["back", "forward"])
def test_a_clock_that_jumps_decides_nothing(second: Sandbox, tmp_path: Path, first: int, then: int) -> None:
    point = "append PublicationDispatched#1:after"
    assert starved(second, tmp_path / "first", f"clock:{first},kill@{point}").code == -signal.SIGKILL
    done = starved(second, tmp_path / "then", f"clock:{then},none")
    assert done.code == 0, done
    assert record_of(tmp_path / "then").source_opens == 0
    check_finishes(second, reads=0)


@pytest.mark.parametrize("point", POINTS)
def test_a_frozen_process_that_was_overtaken_does_no_harm(second: Sandbox, tmp_path: Path, point: str) -> None:
    """The frozen one still holds the engine's folder, so its successor is told; once it ends, the successor finishes.

    Where it holds nothing (the reader has the folder), the successor finishes first.
    """
    first = second.composed(tmp_path / "first", f"freeze@{point}", second.words("r2"))
    await_stopped(first)
    successor = ended(second.composed(tmp_path / "successor", "hasty,none", second.words("r2")), 90)
    first.send_signal(signal.SIGCONT)
    stale = ended(first, 90)
    assert successor.code == 0 or successor.result["error_code"] == "DPONE_ENGINE_BUSY", successor
    assert stale.code == 0 or stale.result["error_code"] == "DPONE_REPLAY_SUPERSEDED", stale
    assert 0 in (successor.code, stale.code) or successor.result["error_code"] == "DPONE_ENGINE_BUSY"
    check_finishes(second)


def await_stopped(process: subprocess.Popen[str], seconds: float = 30.0) -> None:
    """Return when SIGSTOP holds it."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
        assert time.monotonic() < deadline, "it never stopped"
        time.sleep(0.02)
