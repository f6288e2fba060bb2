"""What scripts/demo shows: load, the same command again, a kill after the swap, the same command again.

Every claim on the way is checked against the command's own JSON document and against the ledger; the first that does
not hold ends the demonstration with exit code 1. It works in .demo only, and starts with an empty .demo/home.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from .flights import CHECKOUT, DEMO, MANIFEST, ROWS, provide_flights

HOME = DEMO / "home"
LEDGER = HOME / "ledger.sqlite"
DPONE = Path(sys.executable).parent / "dpone"
KILLS_MAX = 5
COMMAND_SECONDS_MAX = 180
POLL_SECONDS = 0.001


class NotAsClaimed(Exception):
    """The product did not do what the demonstration says that it does."""


def main() -> int:
    """Run the demonstration. Returns 0 when everything was as claimed, 1 when something was not."""
    os.chdir(CHECKOUT)
    started = time.monotonic()
    try:
        prepare()
        load()
        replay()
        run_id, operation = interrupt()
        recover(run_id, operation)
        verify(operation)
    except NotAsClaimed as problem:
        print(f"\n✖ Not as claimed: {problem}\n  What is there stays in {HOME.relative_to(CHECKOUT)} for a look.")
        return 1
    say(f"\nAll as claimed, in {time.monotonic() - started:.0f} s. To look further:\n")
    say("  export DPONE_HOME=.demo/home PATH=$PWD/.venv/bin:$PATH")
    say("  dpone ops list                          every operation and its state")
    say(f"  dpone ops show {operation}                 one operation's evidence")
    say("  docs/tutorial/first-load.md             the same, step by step, with your own file")
    say("  README.md                               how it works, and what it does not do")
    return 0


def prepare() -> None:
    """An empty home of its own, and the data."""
    heading("A fresh home in .demo/home, and 336,776 real flights in .demo/flights.csv.zip")
    provide_flights()
    shutil.rmtree(HOME, ignore_errors=True)
    if HOME.exists():
        raise NotAsClaimed(".demo/home could not be emptied; is a dpone of an earlier demonstration still running?")


def load() -> None:
    """The first operation, from the file to a complete one."""
    heading("Load: read once, check, publish by one swap, observe, complete")
    document = run("demo_001", shown=True)
    result = document["result"]
    claim(document["passed"] is True, "the load did not pass")
    claim(result["extracted_rows"] == ROWS, f"{result['extracted_rows']} rows were read, not {ROWS}")
    claim(state_of(document) == ("proven", "complete"), "the load is not proven and complete")
    claim(observed(document) == {ROWS}, "source, staged and target do not hold the same rows")
    facts(document)


def replay() -> None:
    """The same command once more: validated, and nothing else."""
    heading("The same command again: nothing is read, inserted or published")
    document = run("demo_001", shown=True)
    claim(document["passed"] is True, "the replay did not pass")
    claim(evidence(document)["replayed"] is True, "the second run did not say that it was a replay")
    claim(did_nothing(document), "the replay counted rows")
    facts(document)


def interrupt() -> tuple[str, str]:
    """A second operation, killed between the proof of its swap and its look at the target: its run id and its id."""
    heading("A second operation, killed (SIGKILL) after its swap and before it could look at the target")
    for number in range(2, 2 + KILLS_MAX):
        run_id = f"demo_{number:03}"
        operation = run_and_kill(run_id)
        if operation is not None:
            say(f"  ✖ killed. The ledger says:\n\n$ dpone ops explain {operation}")
            show(["ops", "explain", operation])
            found = json_of(["ops", "show", operation])["result"]
            claim(found["target_commit"] == "proven", "the interrupted operation is not proven")
            claim(found["governance"] == "blocked", "the interrupted operation is not held back")
            return run_id, operation
        say(f"  {run_id} was through before the signal came; again with another run id.")
    raise NotAsClaimed(f"{KILLS_MAX} operations in a row ended before they could be killed")


def run_and_kill(run_id: str) -> str | None:
    """Start an operation and kill it in the window. Its id, or None when the window was missed."""
    words = run_words(run_id)
    say(f"$ {typed(words)} &")
    seen = last_event()
    process = subprocess.Popen(
        [DPONE, *words], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        stopped = stop_after_commit(process, seen)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return operation_in_window(seen) if stopped else None


def stop_after_commit(process: subprocess.Popen[bytes], seen: int) -> bool:
    """Freeze the process once the ledger holds the proof of its swap. False when it ended before.

    The ledger is the only thing that is watched: the product has no switch for this.
    """
    deadline = time.monotonic() + COMMAND_SECONDS_MAX
    while process.poll() is None and time.monotonic() < deadline:
        if any(topic == "CommitProven" for topic, _ in events_after(seen)):
            os.killpg(process.pid, signal.SIGSTOP)
            return True
        time.sleep(POLL_SECONDS)
    return False


def operation_in_window(seen: int) -> str | None:
    """The operation whose swap is proven and whose target nobody has observed, by the ledger's word."""
    happened = events_after(seen)
    topics = {topic for topic, _ in happened}
    if "CommitProven" not in topics or "TargetObserved" in topics:
        return None
    return next(stream for topic, stream in happened if topic == "CommitProven")[:8]


def recover(run_id: str, operation: str) -> None:
    """The same command again: it goes on from the ledger."""
    heading("The same command again: recovered, without a second read and without a second swap")
    document = run(run_id, shown=True)
    claim(document["passed"] is True, "the recovery did not pass")
    claim(did_nothing(document), "the recovery counted rows")
    claim(state_of(document) == ("proven", "complete"), "the recovered operation is not proven and complete")
    claim(observed(document) == {ROWS}, "source, staged and target do not hold the same rows")
    claim(document["attempts"] == 2, f"the recovery was attempt {document['attempts']}, not 2")
    topics = [topic for topic, stream in events_after(0) if stream.startswith(operation)]
    for once in ("SourceObserved", "PublicationDispatched", "CommitProven", "TargetObserved", "OperationCompleted"):
        claim(topics.count(once) == 1, f"{once} stands {topics.count(once)} times in the operation's history")
    facts(document)


def verify(operation: str) -> None:
    """The timeline, and every chain."""
    heading("The operation's whole history, and every event of the ledger checked")
    say(f"$ dpone ops explain {operation}")
    show(["ops", "explain", operation])
    say("\n$ dpone audit verify")
    show(["audit", "verify"])


def run(run_id: str, shown: bool) -> dict[str, Any]:
    """One ``dpone run`` and its document."""
    words = run_words(run_id)
    if shown:
        say(f"$ {typed(words)} --format json")
    return json_of(words)


def run_words(run_id: str) -> list[str]:
    """The words of the command that is typed again and again."""
    return ["run", MANIFEST, "--dag-id", "demo", "--run-id", run_id]


def typed(words: Sequence[str]) -> str:
    """The command as a person would type it."""
    return f"dpone {' '.join(words)}"


def json_of(words: Sequence[str]) -> dict[str, Any]:
    """Run a command and return the one document that it prints, whatever its exit code."""
    ended = subprocess.run(
        [DPONE, *words, "--format", "json"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )
    sys.stderr.write(ended.stderr.decode(errors="replace"))
    try:
        document: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:
        raise NotAsClaimed(f"{typed(words)} printed no document (exit code {ended.returncode})") from None
    if document.get("passed") is not (ended.returncode == 0):
        raise NotAsClaimed(f"{typed(words)} ended with {ended.returncode}, its document says otherwise")
    return document


def show(words: Sequence[str]) -> None:
    """Run a command whose text is for the reader."""
    sys.stdout.flush()
    ended = subprocess.run(
        [DPONE, *words], env=environment(), stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS_MAX, check=False
    )
    claim(ended.returncode == 0, f"{typed(words)} ended with {ended.returncode}")


def environment() -> dict[str, str]:
    """The caller's environment without what would lead dpone elsewhere, and with the demonstration's home."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("DPONE_", "AIRFLOW_"))}
    return {**kept, "DPONE_HOME": str(HOME)}


def last_event() -> int:
    """The place of the ledger's newest event."""
    with closing(_ledger()) as connection:
        row = connection.execute("SELECT max(rowid) FROM stored_events").fetchone()
        return int(row[0] or 0)


def events_after(place: int) -> list[tuple[str, str]]:
    """Name and stream of every event after this place, read without the right to write."""
    with closing(_ledger()) as connection:
        rows = connection.execute(
            "SELECT topic, replace(originator_id, '-', '') FROM stored_events WHERE rowid > ? ORDER BY rowid", (place,)
        )
        return [(str(topic), str(stream)) for topic, stream in rows]


def _ledger() -> sqlite3.Connection:
    return sqlite3.connect(f"{LEDGER.as_uri()}?mode=ro", uri=True, timeout=5)


def evidence(document: dict[str, Any]) -> dict[str, Any]:
    """The document's evidence: capsule, gates, observations, receipt."""
    found: dict[str, Any] = document["result"]["details"]["reconciliation_metrics"]["quality_replay"]
    return found


def observed(document: dict[str, Any]) -> set[int]:
    """The different row counts that source, staged table and target were observed with."""
    acceptance = evidence(document)["acceptance"]
    return {acceptance[where]["row_count"] for where in ("source", "staged", "target")}


def state_of(document: dict[str, Any]) -> tuple[str, str]:
    """What is known of the swap, and of the whole operation."""
    details = document["result"]["replay_details"]
    return details["target_commit"], details["governance"]


def did_nothing(document: dict[str, Any]) -> bool:
    """Whether this run read and inserted no row."""
    return all(document["result"][name] == 0 for name in ("extracted_rows", "inserted_rows", "updated_rows"))


def facts(document: dict[str, Any]) -> None:
    """The lines under a command: what its document says."""
    result, gates = document["result"], evidence(document)["gates"]
    commit, governance = state_of(document)
    checks = ", ".join(f"{gate['id']} {'passed' if gate['passed'] else 'failed'}" for gate in gates)
    say(f"  rows read {result['extracted_rows']:,}, inserted {result['inserted_rows']:,} by this run")
    say(f"  target_commit {commit}, governance {governance}, attempt {document['attempts']}")
    say(f"  gates: {checks}; source, staged and target: {observed(document).pop():,} rows each")
    say(f"  ✔ {result['duration_seconds']:.1f} s")


def claim(holds: bool, otherwise: str) -> None:
    """Go on only while everything is as claimed."""
    if not holds:
        raise NotAsClaimed(otherwise)


def heading(text: str) -> None:
    """Begin a section."""
    say(f"\n── {text}")


def say(text: str) -> None:
    """One line, at once: what runs next may take a while."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
