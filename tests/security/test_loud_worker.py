"""A worker that prints: it has no stdout, no stderr and no terminal of its parent's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpone.adapters.reader.process import ProcessReader
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics, TableIdentity
from tests.adapters.reader.test_hostile_workers import _PROLOGUE

PLAN = ReadPlan("db", "t", {"embedded": TableIdentity("id", "sha256:0")}, (Column("a", "Int8"),), Metrics(("a",)))
_LOUD = """
for stream in (1, 2):
    os.write(stream, b"c4n4ry of a worker\\n\\x1b[2J" * 10_000)
try:
    with open("/dev/tty", "w") as terminal:
        terminal.write("c4n4ry of a worker")
except OSError:
    pass
say_ready(); nonce = take()['nonce']
os.write(1, b"{\\"passed\\": true}\\n")
write(frame(body(nonce)))
"""


def test_what_a_worker_prints_reaches_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "worker.py"
    program.write_text(_PROLOGUE + _LOUD)
    reader = ProcessReader(tmp_path, budget=20, command=(sys.executable, "-I", "-S", str(program)))
    observed = reader.observe(PLAN)
    assert observed.observation.row_count == 3
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")
