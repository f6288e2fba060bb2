"""``dpone ops hold``: new loads are stopped, and the one that owns the target is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpone.domain.events import SlotHeld, SlotUnheld
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, rows_of
from tests.crash.evidence import ledger_findings, operation_of

REVIEW = ("--reviewed-by", "Ada", "--reason", "wrong data")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    made = Sandbox(tmp_path)
    made.write_rows(rows_of(1))
    made.write_manifest()
    return made


def ops(sandbox: Sandbox, *words: str) -> Ended:
    return sandbox.dpone("ops", *words, "--format", "json")


def test_a_held_target_takes_no_new_run_and_keeps_what_it_has(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    held = ops(sandbox, "hold", "db.rows", *REVIEW)
    assert held.code == 0, held
    assert (held.result["held"], held.result["held_by"], len(held.result["changes"])) == (True, "Ada", 1)

    sandbox.write_rows(rows_of(2))
    stopped = sandbox.run("r2")
    assert (stopped.code, stopped.result["error_code"]) == (1, "DPONE_REPLAY_TARGET_BLOCKED")
    assert "Ada" in stopped.err
    assert "wrong data" in stopped.err
    assert engine_rows(sandbox.engine) == rows_of(1)
    assert sandbox.run("r1").code == 0, "a completed run is still validated"

    operation = operation_of(sandbox, "r1")
    assert operation is not None
    for words in (["list"], ["explain", str(operation.stream)]):
        assert ops(sandbox, *words).result["held_targets"] == [
            {"target": str(operation.slot.target), "held_by": "Ada", "reason": "wrong data"}
        ]
        assert "are stopped by Ada: wrong data" in sandbox.dpone("ops", *words).out

    freed = ops(sandbox, "unhold", "db.rows", "--reviewed-by", "Grace", "--reason", "corrected")
    assert (freed.code, freed.result["held"]) == (0, False)
    assert ops(sandbox, "list").result["held_targets"] == []
    assert sandbox.run("r2").code == 0
    assert engine_rows(sandbox.engine) == rows_of(2)
    assert ledger_findings(sandbox) == []


@pytest.mark.parametrize("point", ["fill#1:middle", "swap#1:after", "observe-target#1:after"])
def test_a_hold_never_stops_the_owner(sandbox: Sandbox, point: str) -> None:
    assert sandbox.run("r1").code == 0
    sandbox.write_rows(rows_of(2))
    killed = ended(sandbox.composed(sandbox.folder / "died.txt", f"kill@{point}", sandbox.words("r2")))
    assert killed.code == -9
    assert ops(sandbox, "hold", "db.rows", *REVIEW).code == 0
    assert sandbox.run("r2").code == 0
    assert engine_rows(sandbox.engine) == rows_of(2)
    assert sandbox.run("r3").result["error_code"] == "DPONE_REPLAY_TARGET_BLOCKED"


def test_held_twice_is_held_by_the_first(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    assert ops(sandbox, "hold", "db.rows", *REVIEW).code == 0
    again = ops(sandbox, "hold", "db.rows", "--reviewed-by", "Grace", "--reason", "me too")
    assert (again.code, again.result["held_by"], again.result["changes"]) == (0, "Ada", [])
    assert ops(sandbox, "unhold", "db.rows", *REVIEW).code == 0
    assert ops(sandbox, "unhold", "db.rows", *REVIEW).result["changes"] == []
    found = operation_of(sandbox, "r1")
    assert found is not None
    with open_ledger(sqlite_url(sandbox.ledger), create=False) as ledger:
        events = [one.event for stream in ledger.streams() for one in ledger.read(stream)]
    decisions = [event.review for event in events if isinstance(event, SlotHeld | SlotUnheld)]
    assert [(one.name, one.reason, bool(one.by.os_user)) for one in decisions] == [("Ada", "wrong data", True)] * 2


@pytest.mark.parametrize(
    "words",
    [
        ("hold", "db.nothing", *REVIEW),
        ("hold", "db.rows", "--reviewed-by", "", "--reason", "x"),
        ("hold", "db.rows", "--reviewed-by", "Ada", "--reason", "two\nlines"),
        ("hold", "db.rows", *REVIEW, "--platform", "ffffffff"),
        ("hold", "db.rows"),
    ],
    ids=["unknown", "nameless", "unprintable", "platform", "unreviewed"],
)
def test_what_is_refused_changes_nothing(sandbox: Sandbox, words: tuple[str, ...]) -> None:
    assert sandbox.run("r1").code == 0
    refused = ops(sandbox, *words)
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert found.slot.held is None
