"""``dpone audit replay``: the state at any moment from events alone, and why each step followed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from tests.cli.sandbox import Sandbox, rows_of
from tests.cli.waiting import await_line


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """One run, complete, for tests that only look."""
    made = Sandbox(tmp_path_factory.mktemp("done"))
    made.write_rows(rows_of(1))
    made.write_manifest()
    assert made.run().code == 0
    return made


def operation_of(sandbox: Sandbox, run_id: str = "r1") -> str:
    items = sandbox.dpone("ops", "list", "--format", "json").result["items"]
    return next(str(item["operation_id"]) for item in items if item["run_id"] == run_id)


def replayed(sandbox: Sandbox, operation: str, *words: str) -> dict[str, Any]:
    ended = sandbox.dpone("audit", "replay", operation, *words, "--format", "json")
    assert ended.code == 0, ended.err
    return ended.result


def steps(shown: dict[str, Any]) -> list[str | None]:
    return [one["step"] for one in shown["history"]]


def killed_at(sandbox: Sandbox, point: str) -> None:
    """A run that sleeps at a point until it is killed there."""
    record = sandbox.folder / "record"
    process = sandbox.composed(record, f"sleep@{point}", sandbox.words())
    await_line(record, f"point {point}")
    process.kill()
    process.communicate()


LIFE = [
    "Claim", "Stage", "Stage", "Rehearse", "EvaluateGates", "WriteCapsule", "Dispatch", "Settle", "Observe", "Observe",
    "AcceptReceipt", "ReleaseGuard", "Complete",
]  # fmt: skip


def test_a_life_followed_step_by_step(done: Sandbox) -> None:
    operation = operation_of(done)
    shown = replayed(done, operation)
    assert steps(shown) == LIFE
    assert shown["follows"] is True
    assert all(one["because"] for one in shown["history"])
    assert (shown["operation"]["state"], shown["next_step"]) == ("COMPLETE", "ValidateReplay")
    assert shown["slot"]["live_generation"] == shown["operation"]["generation"]


def test_every_prefix_is_a_state_of_its_own_and_says_what_would_have_come_next(done: Sandbox) -> None:
    operation = operation_of(done)
    whole = replayed(done, operation)
    expected = {event["version"]: (one["state"], one["next_step"]) for one, event in _own_last(whole["history"])}
    for version, (state, step) in expected.items():
        shown = replayed(done, operation, "--at", str(version))
        assert shown["at"]["version"] == version == shown["operation"]["events"]
        assert shown["history"] == whole["history"][: len(shown["history"])]
        assert (shown["operation"]["state"], shown["next_step"]) == (state, step)


def _own_last(history: Iterable[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    for one in history:
        own = [event for event in one["events"] if event["stream"] == "operation"]
        if own:
            yield one, own[-1]


def test_the_rows_of_a_moment_are_those_that_a_projection_showed_then(sandbox: Sandbox) -> None:
    to = f"sqlite://{sandbox.folder / 'p.sqlite'}"
    killed_at(sandbox, "append CommitProven+GenerationPublished#1:after")
    assert sandbox.dpone("ledger", "project", "--to", to).code == 0
    with closing(sqlite3.connect(sandbox.folder / "p.sqlite")) as connection:
        connection.row_factory = sqlite3.Row
        (then,) = [dict(row) for row in connection.execute("SELECT * FROM operations")]
        (slot,) = [dict(row) for row in connection.execute("SELECT * FROM slots")]
    assert sandbox.run().code == 0
    shown = replayed(sandbox, then["operation_id"], "--at", "CommitProven")
    assert (then["state"], shown["operation"]) == ("COMMITTED", then | {"gates_passed": True})
    cut = replayed(sandbox, then["operation_id"], "--at", then["updated_at"])
    assert cut["at"]["event"] == "CommitProven"
    later = replayed(sandbox, then["operation_id"], "--at", str(shown["at"]["version"] + 1))
    assert later["slot"]["live_generation"] == slot["live_generation"] == then["generation"]


@pytest.mark.parametrize(
    ("point", "taken_up"),
    [
        ("append SourceObserved+CandidateStaged#1:before", ["StartAttempt", "AbandonStaging", "WorkOff", "Stage"]),
        ("append PublicationDispatched#1:after", ["StartAttempt", "Settle"]),
        ("append TargetPending+ReaderGuardAcquired#1:after", ["StartAttempt", "Observe"]),
    ],
)
def test_a_recovery_is_told_as_one(sandbox: Sandbox, point: str, taken_up: list[str]) -> None:
    killed_at(sandbox, point)
    operation = operation_of(sandbox)
    before = replayed(sandbox, operation)
    assert sandbox.run().code == 0
    after = replayed(sandbox, operation)
    assert after["history"][: len(before["history"])] == before["history"]
    assert steps(after)[len(before["history"]) :][: len(taken_up)] == taken_up
    assert after["follows"] is True


def test_a_replay_a_failure_a_correction_and_a_displacement_are_told(sandbox: Sandbox) -> None:
    assert (sandbox.run().code, sandbox.run().code) == (0, 0)
    assert steps(replayed(sandbox, operation_of(sandbox)))[-1] == "ValidateReplay"
    sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 100_000}])
    assert sandbox.run("r2").code == 1
    failed = replayed(sandbox, operation_of(sandbox, "r2"))
    assert failed["history"][-1]["because"].endswith("it truly failed")
    sandbox.write_manifest()
    assert sandbox.run("r2").code == 0
    corrected = replayed(sandbox, operation_of(sandbox, "r2"))
    assert [one["because"] for one in corrected["history"] if one["step"] == "Claim"][1].startswith("it was FAILED")
    killed_at_run = sandbox.composed(
        sandbox.folder / "record", "sleep@append CapsuleWritten#1:after", sandbox.words("r3")
    )
    await_line(sandbox.folder / "record", "point append CapsuleWritten#1:after")
    killed_at_run.kill()
    killed_at_run.communicate()
    assert sandbox.run("r4").code == 0
    displaced = replayed(sandbox, operation_of(sandbox, "r3"))
    assert displaced["history"][-1]["step"] is None
    assert "took the target before this one had dispatched" in displaced["history"][-1]["because"]
    claim = replayed(sandbox, operation_of(sandbox, "r4"))["history"][0]
    assert "was an earlier run that had not dispatched" in claim["because"]
    for run_id in ("r1", "r2", "r3", "r4"):
        assert replayed(sandbox, operation_of(sandbox, run_id))["follows"] is True


def test_the_text_says_the_same(done: Sandbox) -> None:
    text = done.dpone("audit", "replay", operation_of(done)[:8], "--at", "CapsuleWritten").out
    assert "as of event 8 of 15: CapsuleWritten" in text
    assert "WriteCapsule: the gates passed and the evidence is not sealed" in text
    assert "CommitProven" not in text
    assert text.splitlines()[-1].startswith("The same command would now look at every replica and publish")


@pytest.mark.parametrize("at", ["0", "16", "99999999999", "Nothing", "2026-13-01", "yesterday at 4", "", "٣"])
def test_a_moment_that_is_none_is_refused(done: Sandbox, at: str) -> None:
    refused = done.dpone("audit", "replay", operation_of(done), "--at", at, "--format", "json")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")


def test_a_time_before_it_began_is_refused_and_a_later_one_is_all(done: Sandbox) -> None:
    operation = operation_of(done)
    early = done.dpone("audit", "replay", operation, "--at", "2020-01-01T00:00:00Z")
    assert early.code == 2
    assert "not admitted yet" in early.err
    assert replayed(done, operation, "--at", "2999-01-01") == replayed(done, operation)
