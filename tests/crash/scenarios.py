"""What is running when the process dies: each scenario prepares a home, names one command and what must come of it.

``whole`` tries every point. The others leave out a point that directly follows another one: nothing outside the process
changes between "after this" and "before that". ``first`` and ``last`` bound the points that are tried where the rest is
another scenario's. The points themselves are never written by hand: ``python -m tests.crash.scenarios`` runs every
scenario once to completion and records them in
``matrix.json``; a test holds that file against a fresh recording.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cli.sandbox import ROWS_GATE, Sandbox, ended, rows_of

MATRIX = Path(__file__).with_name("matrix.json")
IMPOSSIBLE_GATE = {"id": "many", "type": "min_rows", "rows": 1_000_000}


@dataclass(frozen=True, slots=True)
class Scenario:
    """``before`` and ``after`` are the live table's generation of rows before and after the command (None: no table).

    ``options`` (see tests.crash.process) go before the action of the run that is killed, ``repeated`` before that of
    the run that recovers. ``swapped`` tells that the preparation has swapped already.
    """

    name: str
    prepare: Callable[[Sandbox], None]
    before: int | None
    after: int | None
    run_id: str = "r1"
    options: str = ""
    repeated: str = ""
    code: int = 0
    first: str = ""
    last: str = ""
    whole: bool = False
    swapped: bool = False

    def record(self, sandbox: Sandbox) -> list[str]:
        """Run to completion and list the points."""
        record = sandbox.folder / "recorded.txt"
        ended(sandbox.composed(record, f"{self.options}none", sandbox.words(self.run_id)))
        points = [line.removeprefix("point ") for line in record.read_text().splitlines() if line.startswith("point ")]
        return self._bounded(points)

    def _bounded(self, points: list[str]) -> list[str]:
        start = next((i for i, point in enumerate(points) if self.first in point), 0) if self.first else 0
        ends = [i for i, point in enumerate(points) if self.last in point] if self.last else [len(points) - 1]
        chosen = points[start : ends[0] + 1]
        return chosen if self.whole else _distinct(chosen)


def _distinct(points: list[str]) -> list[str]:
    after = [True, *(not point.endswith(":after") for point in points)]
    return [point for point, keep in zip(points, after, strict=False) if keep or not point.endswith(":before")]


def _first(sandbox: Sandbox) -> None:
    sandbox.write_rows(rows_of(1))
    sandbox.write_manifest()


def _third(sandbox: Sandbox) -> None:
    """Two generations were published: the third exchanges, keeps its predecessor and retires the first."""
    for generation in (1, 2):
        sandbox.write_rows(rows_of(generation))
        sandbox.write_manifest()
        assert sandbox.run(f"r{generation}").code == 0
    sandbox.write_rows(rows_of(3))


def _second(sandbox: Sandbox) -> None:
    _first(sandbox)
    assert sandbox.run("r1").code == 0
    sandbox.write_rows(rows_of(2))


def _without_target(sandbox: Sandbox) -> None:
    """Capsule v1."""
    _second(sandbox)
    sandbox.write_manifest(acceptance={"capture": {"source": True, "staged": True, "target": False}})


def _not_durable(sandbox: Sandbox) -> None:
    _second(sandbox)
    sandbox.write_manifest(durable=False)


def _failing_gate(sandbox: Sandbox) -> None:
    _second(sandbox)
    sandbox.write_manifest(gates=[ROWS_GATE, IMPOSSIBLE_GATE])


def _failed_and_mended(sandbox: Sandbox) -> None:
    """The gate failed, the manifest was mended: the same run takes the target again, with what changed recorded."""
    _failing_gate(sandbox)
    assert sandbox.run("r2").code == 1
    sandbox.write_manifest()


def _warn_only(sandbox: Sandbox) -> None:
    _second(sandbox)
    sandbox.write_manifest(acceptance={"mode": "warn_only"})


def _stopped(point: str, options: str = "") -> Callable[[Sandbox], None]:
    """Run r2 died at a point: what is killed is already a recovery."""

    def prepare(sandbox: Sandbox) -> None:
        _second(sandbox)
        died = ended(sandbox.composed(sandbox.folder / "died.txt", f"{options}kill@{point}", sandbox.words("r2")))
        assert died.code == -9, died

    return prepare


def _complete(sandbox: Sandbox) -> None:
    _second(sandbox)
    assert sandbox.run("r2").code == 0


CLAIM = "append OperationReopened+AttemptStarted+SlotClaimed#1:before"
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("first", _first, None, 1),
        Scenario("third", _third, 2, 3, "r3", whole=True),
        Scenario("capsule-v1", _without_target, 1, 2, "r2", first="append SourceObserved"),
        Scenario("not-durable", _not_durable, 1, 2, "r2", first="append SourceObserved"),
        Scenario("failing-gate", _failing_gate, 1, 1, "r2", code=1, first="fill#1:middle"),
        Scenario("failed-and-mended", _failed_and_mended, 1, 2, "r2", first="OperationReopened", last="create#1:after"),
        Scenario("unobserved", _second, 1, 2, "r2", options="deaf,", first="observe-target"),
        Scenario("warn-only", _warn_only, 1, 2, "r2", options="deaf,", repeated="deaf,", first="append CommitProven"),
        Scenario("replay", _complete, 2, 2, "r2", first="append"),
        Scenario(
            "displacing", _stopped("append CapsuleWritten#1:after"), 1, 2, "r3", last="create#1:after", first="append"
        ),
        Scenario("half-filled", _stopped("fill#1:middle"), 1, 2, "r2", last="create#1:after", first="append"),
        Scenario(
            "never-sent",
            _stopped("swap#1:before"),
            1,
            2,
            "r2",
            last="append TargetPending+ReaderGuardAcquired#1:after",
            first="append",
        ),
        Scenario(
            "sent-unheard",
            _stopped("swap#1:after"),
            1,
            2,
            "r2",
            last="append CommitProven+GenerationPublished#1:after",
            first="append",
            swapped=True,
        ),
        Scenario(
            "half-sealed",
            _stopped("rename#1:after"),
            1,
            2,
            "r2",
            last="append CommitProven+GenerationPublished#1:after",
            first="append",
            swapped=True,
        ),
        Scenario("reader-died", _stopped("observe-target#1:after"), 1, 2, "r2", first="append", swapped=True),
        Scenario(
            "receipt-lost", _stopped("append ReaderGuardReleased#1:after"), 1, 2, "r2", first="append", swapped=True
        ),
    )
}


def recorded() -> dict[str, list[str]]:
    """Every scenario's points, from a run of each."""
    found = {}
    for name, scenario in SCENARIOS.items():
        with tempfile.TemporaryDirectory(prefix="dpone-crash-") as folder:
            sandbox = Sandbox(Path(folder))
            scenario.prepare(sandbox)
            found[name] = scenario.record(sandbox)
    return found


def matrix() -> dict[str, list[str]]:
    """The points as they were last recorded."""
    found: dict[str, list[str]] = json.loads(MATRIX.read_text()) if MATRIX.exists() else {}
    return found


if __name__ == "__main__":
    MATRIX.write_text(json.dumps(recorded(), indent=1) + "\n")
