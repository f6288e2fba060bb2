"""Workers that do everything but answer as agreed: never an observation, always gone within a bound."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpone.adapters.cluster.session import Endpoint
from dpone.adapters.connections import Connection
from dpone.adapters.reader import ProcessReader, ServerReader
from dpone.domain.errors import ReaderFailed
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics, TableIdentity

PLAN = ReadPlan("db", "t", {"embedded": TableIdentity("id", "sha256:0")}, (Column("a", "Int8"),), Metrics(("a",)))

_PROLOGUE = """
import json, os, signal, sys, time
plan, ready, reply, parent = map(int, sys.argv[1:])
def say_ready():
    os.write(ready, time.monotonic_ns().to_bytes(8, "big")); os.close(ready)
def take():
    with os.fdopen(plan, "rb") as stream:
        return json.loads(stream.read()[4:])
def body(nonce, rows=3, nulls=1):
    seen = {"row_count": rows, "null_counts": {"a": nulls}, "distinct_counts": {}, "typed_hash": None}
    reply = {"nonce": nonce, "outcome": "observed", "observation": seen, "engine_code": None, "replica": None}
    return json.dumps(reply).encode()
def frame(text):
    return len(text).to_bytes(4, "big") + text
def write(data):
    while data:
        data = data[os.write(reply, data):]
"""
_GOOD = "say_ready(); nonce = take()['nonce']; "
_NAMING = _GOOD + """write(frame(body(nonce).replace(b'"replica": null', b'"replica": "{}"')))"""

HOSTILE = {
    "empty": "say_ready(); take()",
    "never ready": "os.close(ready); take()",
    "wrong nonce": _GOOD + "write(frame(body('0' * 32)))",
    "trailing byte": _GOOD + "write(frame(body(nonce)) + b'x')",
    "duplicate": _GOOD + "write(frame(body(nonce)) * 2)",
    "cut short": _GOOD + "write(frame(body(nonce))[:-1])",
    "no JSON": _GOOD + "write(frame(b'row_count=3'))",
    "oversized": _GOOD + "write(frame(b' ' * (256 * 1024)))",
    "endless": _GOOD + "\nwhile True: write(b'x' * 65536)",
    "boolean count": _GOOD + "write(frame(body(nonce, rows=True)))",
    "missing metric": _GOOD + "write(frame(body(nonce).replace(b'\"a\": 1', b'')))",
    "duplicate key": _GOOD + "write(frame(body(nonce)[:-1] + b', \"nonce\": \"' + nonce.encode() + b'\"}'))",
    "unknown field": _GOOD + "write(frame(body(nonce)[:-1] + b', \"x\": 1}'))",
    "exit code": _GOOD + "write(frame(body(nonce))); os._exit(3)",
    "killed": _GOOD + "write(frame(body(nonce))); os.kill(os.getpid(), 9)",
    "early": "write(frame(body('0' * 32))); say_ready(); take()",
    "foreign replica": _NAMING.format("x"),
    "observed, and a replica in the way": _NAMING.format("embedded"),
    "takes no plan": "say_ready(); os.close(plan); os._exit(0)",
    "ready twice": "os.write(ready, b'x' * 16); os.close(ready); take()",
}

NEVER_ENDING = {
    "never ready": "time.sleep(60)",
    "silent": "say_ready(); take(); time.sleep(60)",
    "late": _GOOD + "time.sleep(4); write(frame(body(nonce)))",
    "takes no plan": "say_ready(); time.sleep(60)",
    "answers and stays": _GOOD + "write(frame(body(nonce))); os.close(reply); time.sleep(60)",
    "ignores SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN); say_ready(); take(); time.sleep(60)",
    "leaves a child with the channel": _GOOD + "\nif os.fork(): os._exit(0)\ntime.sleep(60)",
}


Reader = ProcessReader | ServerReader
ReaderOf = Callable[[str, float], Reader]


@pytest.fixture(params=["folder", "servers"])
def reader_of(request: pytest.FixtureRequest, tmp_path: Path) -> ReaderOf:
    """Makes a reader with a budget, of either place, whose worker is a script."""

    def made(script: str, budget: float) -> Reader:
        program = tmp_path / "worker.py"
        program.write_text(_PROLOGUE + script)
        command = (sys.executable, "-I", "-S", str(program))
        if request.param == "folder":
            return ProcessReader(tmp_path, budget=budget, command=command)
        endpoints = [Endpoint("embedded", "nowhere.invalid", 9)]
        return ServerReader(Connection("x", "nowhere.invalid"), endpoints, budget=budget, command=command)

    return made


def test_the_script_that_answers_as_agreed_is_believed(reader_of: ReaderOf) -> None:
    script = _GOOD + "print('noise', flush=True); write(frame(body(nonce)))"
    result = reader_of(script, 10).observe(PLAN)
    assert (result.observation.row_count, result.observation.null_counts) == (3, {"a": 1})


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
def test_anything_else_is_no_observation(reader_of: ReaderOf, script: str) -> None:
    with pytest.raises(ReaderFailed) as caught:
        reader_of(script, 10).observe(PLAN)
    assert caught.value.reaped is True


@pytest.mark.parametrize("script", NEVER_ENDING.values(), ids=NEVER_ENDING)
def test_the_budget_ends_what_does_not_end(reader_of: ReaderOf, tmp_path: Path, script: str) -> None:
    reader = reader_of(script, 1.5)  # of which the start of Python takes a part
    started = time.monotonic()
    with pytest.raises(ReaderFailed) as caught:
        reader.observe(PLAN)
    assert time.monotonic() - started < 3.5
    assert caught.value.reaped is True
    assert caught.value.fits is (script == NEVER_ENDING["never ready"])  # what had its plan would be as late again
    while left := _left_behind(tmp_path):  # SIGKILL was sent to the whole group; children go a moment later
        assert time.monotonic() - started < 5, left


def test_a_worker_that_is_slow_to_start_spends_the_budget(reader_of: ReaderOf) -> None:
    reader = reader_of("time.sleep(0.6); " + _GOOD + "time.sleep(0.6); write(frame(body(nonce)))", 1.0)
    reader.warm()
    time.sleep(1.0)  # ready long since; idling costs nothing, starting did
    with pytest.raises(ReaderFailed):
        reader.observe(PLAN)


def test_a_plan_larger_than_a_pipe_is_handed_over(reader_of: ReaderOf) -> None:
    columns = tuple(Column(f"{i:04}" + "n" * 300, "Int8") for i in range(1000))
    plan = ReadPlan("db", "t", PLAN.identities, (Column("a", "Int8"), *columns), PLAN.metrics)
    script = "say_ready(); time.sleep(0.2); nonce = take()['nonce']; write(frame(body(nonce)))"
    assert reader_of(script, 10).observe(plan).observation.row_count == 3


def _left_behind(place: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(place).encode() in command:
            found.append(process.name)
    return found
