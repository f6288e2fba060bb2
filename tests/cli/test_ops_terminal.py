"""A person at a terminal: the decision is shown, the operation's short id is typed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dpone.domain.operation import State
from tests.cli.sandbox import Sandbox, ended, rows_of
from tests.crash.evidence import operation_of


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Run r1 died after its swap was recorded and before it was sent."""
    made = Sandbox(tmp_path)
    made.write_rows(rows_of(1))
    made.write_manifest()
    killed = ended(made.composed(tmp_path / "died", "kill@swap#1:before", made.words("r1")))
    assert killed.code == -9
    return made


def typed(sandbox: Sandbox, text: str, *words: str) -> tuple[int, str]:
    """The command with a terminal as its input, into which ``text`` is typed."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("dpone")), *words],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env=sandbox.variables(),
        )
        os.write(ours, f"{text}\n".encode())
        out, _ = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    return process.returncode, out


def test_the_short_id_is_typed(sandbox: Sandbox) -> None:
    found = operation_of(sandbox, "r1")
    assert found is not None
    short = str(found.stream)[:8]
    words = ("ops", "retire", short, "--reviewed-by", "Ada", "--reason", "skipped", "--evidence", "its host is gone")
    for text in ("", "y", "00000000"):
        code, out = typed(sandbox, text, *words)
        assert code == 2, out
        assert f"To decide so, type {short}" in out
    again = operation_of(sandbox, "r1")
    assert again is not None
    assert again.events == found.events

    code, out = typed(sandbox, short, *words)
    assert code == 0, out
    assert "holds what was live before" in out
    ending = operation_of(sandbox, "r1")
    assert ending is not None
    assert ending.operation.state is State.RETIRED


def test_tables_are_dropped_after_a_yes(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 1_000_000}])
    assert sandbox.run("r2").code == 1
    code, out = typed(sandbox, "n", "ops", "sweep")
    assert (code, "dropped db." in out) == (0, False), out
    code, out = typed(sandbox, "y", "ops", "sweep")
    assert (code, "dropped db." in out) == (0, True), out
