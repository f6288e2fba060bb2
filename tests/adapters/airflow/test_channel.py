"""Frames between a task and its load: whole, bounded, and nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dpone import Connection, DponeError, ErrorCode
from dpone.adapters.airflow import frames
from dpone.adapters.airflow.frames import FRAME_BYTES_MAX, FrameInvalid, Incoming
from dpone.adapters.airflow.request import Handed, bound, connection_frame, refusal_frame, settings_of
from dpone.adapters.connections.refusals import Unanswered
from dpone.adapters.program.running import Request
from dpone.domain.identity import Task


def test_frames_come_whole_however_the_bytes_come() -> None:
    sent: list[frames.Frame] = [{"want": "shop"}, {"document": {"ä": 1}, "exit_code": 0}]
    stream = b"".join(frames.encode(frame) for frame in sent)
    incoming = Incoming()
    assert [frame for byte in stream for frame in incoming.feed(bytes([byte]))] == sent
    assert list(Incoming().feed(stream)) == sent


@pytest.mark.parametrize(
    "spoilt", [(FRAME_BYTES_MAX + 1).to_bytes(4, "big"), b"\0\0\0\2[]", b"\0\0\0\1{", b"\0\0\0\1\xff"]
)
def test_what_is_no_frame_is_refused(spoilt: bytes) -> None:
    with pytest.raises(FrameInvalid):
        list(Incoming().feed(spoilt))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(spoilt)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(FrameInvalid):
            frames.receive(theirs)


def test_a_request_and_a_connection_cross_unchanged() -> None:
    request = Request(Path("a.yaml"), "s", "d", "r", "sqlite:///x", Task("t", 3, 2, "019d"))
    handed = Handed(request, {"DPONE_HOME": "here"})
    (there,) = Incoming().feed(frames.encode(handed.frame()))
    assert Handed.of(there) == handed
    connection = Connection("shop", "h", 1, "db", "u", "p", True, None, {"a": 1.5, "b": "x"}, "postgres")
    (answer,) = Incoming().feed(frames.encode(connection_frame(connection)))
    assert bound(answer) == connection


def test_a_refusal_is_the_same_refusal_on_the_other_side() -> None:
    refused = Unanswered(ErrorCode.CONNECTION_REFUSED, "what", safe="safe", next="next")
    with pytest.raises(Unanswered) as raised:
        bound(refusal_frame(refused))
    error = raised.value
    assert (error.code, error.what, error.safe, error.next) == (refused.code, "what", "safe", "next")
    plain = DponeError(ErrorCode.CONNECTION_NOT_FOUND, "what", exit_code=2)
    with pytest.raises(DponeError) as other:
        bound(refusal_frame(plain))
    assert (type(other.value), other.value.exit_code) == (DponeError, 2)


def test_no_connection_and_no_identity_of_the_worker_is_handed_over() -> None:
    worker = {
        "DPONE_HOME": "h",
        "DPONE_LEDGER": "l",
        "PGPASSFILE": "f",
        "DPONE_CONN_SHOP_PASSWORD": "p",
        "DPONE_CONNECTIONS": "c",
        "DPONE_RUN_ID": "r",
        "AIRFLOW_CONN_SHOP": "a",
        "AIRFLOW_CTX_DAG_ID": "d",
        "OTHER": "o",
    }
    assert settings_of(worker) == {"DPONE_HOME": "h", "DPONE_LEDGER": "l", "PGPASSFILE": "f"}


def test_a_load_that_is_asked_nonsense_says_one_line_without_a_trace() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.encode({"nonsense": "s3cret"}))
        done = subprocess.run(
            [sys.executable, "-m", "dpone.adapters.airflow.child", str(theirs.fileno()), str(os.getpid())],
            pass_fds=(theirs.fileno(),),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "The load's process could not answer: FrameInvalid.\n")
