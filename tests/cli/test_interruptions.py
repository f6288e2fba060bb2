"""SIGTERM and Ctrl-C wherever a run may be: it ends within five seconds with one document, and the same command
completes it. The recording composition holds the process at a point; the signal is a real one.
"""

from __future__ import annotations

import signal
import sys
import time

import pytest

from tests.cli.sandbox import Sandbox, ended, engine_rows, rows_of
from tests.cli.waiting import await_line

POINTS = [
    "append OperationAdmitted+AttemptStarted+SlotOpened+SlotClaimed#1:after",
    "create#1:after",
    "fill#1:middle",
    "append SourceObserved+CandidateStaged#1:before",
    "observe-candidate#1:before",
    "append CapsuleWritten#1:after",
    "append PublicationDispatched#1:after",
    "swap#1:after",
    "append TargetPending+ReaderGuardAcquired#1:after",
    "observe-target#1:after",
    "append ReceiptAccepted#1:after",
]
SECONDS_MAX = 5.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("point", POINTS)
def test_a_signal_ends_the_run_and_loses_nothing(sandbox: Sandbox, point: str, number: signal.Signals) -> None:
    record = sandbox.folder / "record"
    process = sandbox.composed(record, f"sleep@{point}", sandbox.words())
    await_line(record, f"point {point}")
    began = time.monotonic()
    process.send_signal(number)
    stopped = ended(process)
    assert time.monotonic() - began < SECONDS_MAX
    assert stopped.code == 128 + number
    assert stopped.document["passed"] is False
    assert stopped.result["error_code"] == "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE"
    assert stopped.details["next"].startswith("dpone run ")
    assert sandbox.run().code == 0
    assert engine_rows(sandbox.engine) == rows_of(1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_in_the_middle_of_an_engine_query(sandbox: Sandbox, number: signal.Signals) -> None:
    record = sandbox.folder / "record"
    process = sandbox.composed(record, "slow,none", sandbox.words())
    await_line(record, "slow query")
    time.sleep(0.5)  # well into a query that would take many minutes
    began = time.monotonic()
    process.send_signal(number)
    stopped = ended(process)
    assert time.monotonic() - began < SECONDS_MAX
    assert (stopped.code, stopped.document["passed"]) == (128 + number, False)
    assert sandbox.run().code == 0


def test_a_second_signal_does_not_cut_the_document_off(sandbox: Sandbox) -> None:
    record = sandbox.folder / "record"
    process = sandbox.composed(record, "sleep@fill#1:middle", sandbox.words())
    await_line(record, "point fill#1:middle")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    stopped = ended(process)
    assert stopped.code in (130, 143)
    assert stopped.document["passed"] is False


EARLY = """
import os, signal, sys
from dpone.adapters.cli import early
early.note_signals()
os.kill(os.getpid(), int(sys.argv[1]))
from dpone.adapters.cli.entry import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_before_the_program_is_loaded_is_answered(sandbox: Sandbox, number: signal.Signals) -> None:
    words = [str(int(number)), *sandbox.words()]
    stopped = ended(sandbox.start(words, (sys.executable, "-c", EARLY)))
    assert (stopped.code, stopped.document["passed"]) == (128 + number, False)
    assert f"Stopped by {number.name}" in stopped.err
    assert not sandbox.home.exists()


@pytest.mark.parametrize("words", [["ops", "list"], ["ops", "list", "--format", "json"], ["audit", "verify"]])
def test_an_output_that_cannot_be_written_is_said(sandbox: Sandbox, words: list[str]) -> None:
    assert sandbox.run().code == 0
    with open("/dev/full", "w") as full:  # noqa: PTH123
        failed = ended(sandbox.start(words, stdout=full))
    assert failed.code == 1
    assert "could not be written" in failed.err
