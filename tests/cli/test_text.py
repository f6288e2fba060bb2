"""What a person reads: the story, a bar on a terminal, none in a pipe."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time

from tests.cli.sandbox import CANARY, Sandbox, ended, rows_of


def _text(sandbox: Sandbox, run_id: str = "r1") -> list[str]:
    return [word for word in sandbox.words(run_id) if word not in ("--format", "json")]


def test_the_story_tells_each_step_and_no_bar_is_in_a_pipe(sandbox: Sandbox) -> None:
    done = sandbox.dpone(*_text(sandbox))
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert "\r" not in done.out
    places = [done.out.index(word) for word in ("admitted", "read", "staged", "dispatched", "committed", "complete")]
    assert places == sorted(places)
    assert "load → db.rows" in done.out


def test_a_replay_begins_with_the_words_that_nothing_was_read(sandbox: Sandbox) -> None:
    sandbox.dpone(*_text(sandbox))
    assert sandbox.dpone(*_text(sandbox)).out.startswith("Nothing was read")


def test_a_run_without_an_id_says_that_repeating_is_no_recovery(sandbox: Sandbox) -> None:
    done = sandbox.dpone("run", str(sandbox.manifest))
    assert done.code == 0
    assert "not a recovery" in done.out
    assert "--dag-id manual" in done.out


def test_a_failure_says_what_is_safe_and_what_to_type(sandbox: Sandbox) -> None:
    sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 301}])
    failed = sandbox.dpone(*_text(sandbox))
    assert failed.code == 1
    assert failed.err.startswith("DPONE_REPLAY_QUALITY_EVIDENCE_FAILED: ")
    assert "\nSafe:  " in failed.err
    assert "\nNext:  Correct the source or the gate" in failed.err
    assert f"dpone run {sandbox.manifest} --selector s.rows --dag-id d --run-id r1" in failed.err


def test_a_bar_with_rows_and_rate_on_a_terminal(sandbox: Sandbox) -> None:
    sandbox.write_rows(rows_of(1, 200_000))
    master, slave = pty.openpty()
    try:
        process = sandbox.start(_text(sandbox), stderr=slave, stdout=slave)
        os.close(slave)
        shown = _read_all(master, process)
    finally:
        os.close(master)
    assert process.returncode == 0
    assert "rows/s" in shown
    assert "\x1b[" in shown
    assert "complete" in shown
    assert CANARY not in shown


def test_json_on_a_terminal_has_no_bar(sandbox: Sandbox) -> None:
    master, slave = pty.openpty()
    try:
        process = sandbox.start(sandbox.words(), stderr=slave)
        os.close(slave)
        out = process.stdout.read()  # type: ignore[union-attr]
        shown = _read_all(master, process)
    finally:
        os.close(master)
    assert (process.returncode, shown) == (0, "")
    assert out.count("\n") == 1


def test_a_reader_that_went_away_is_no_error(sandbox: Sandbox) -> None:
    process = sandbox.start(_text(sandbox))
    process.stdout.close()  # type: ignore[union-attr]
    err = process.stderr.read()  # type: ignore[union-attr]
    process.wait(30)
    assert "Traceback" not in err
    assert "Exception" not in err


def test_control_characters_of_an_id_do_not_reach_the_terminal(sandbox: Sandbox) -> None:
    refused = sandbox.dpone("run", str(sandbox.manifest), "--run-id", "a\x1b[31mb")
    assert refused.code == 2
    assert "\x1b" not in refused.err + refused.out


def test_the_module_runs_as_the_command_does(sandbox: Sandbox) -> None:
    help_text = ended(sandbox.start(["--help"]))
    assert help_text.code == 0
    assert "run" in help_text.out


def _read_all(master: int, process: subprocess.Popen[str]) -> str:
    shown, deadline = b"", time.monotonic() + 30
    waiting = select.poll()
    waiting.register(master, select.POLLIN)
    while time.monotonic() < deadline:
        ready = waiting.poll(100)
        if not ready and process.poll() is not None:
            break
        try:
            shown += os.read(master, 65536) if ready else b""
        except OSError:  # the other side was closed
            break
    process.wait(10)
    return shown.decode(errors="replace")
