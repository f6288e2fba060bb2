"""``dpone ops retire`` and ``release-guard``: what is shown, what is refused, what is recorded, and killed anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dpone.domain.names import is_candidate_name, is_retired_name
from dpone.domain.operation import State
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, engine_tables, opened_engine, rows_of
from tests.crash.evidence import ledger_findings, operation_of, record_of

REVIEW = ("--reviewed-by", "Ada", "--reason", "the night is skipped")
EVIDENCE = ("--evidence", "the worker is gone and its queue was drained")
BeforeStaged = Callable[[str], Sandbox]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> BeforeStaged:
    """A copy of a home where run r1 completed and r2 was killed at a point. Each point is prepared once."""
    made: dict[str, Path] = {}

    def of(point: str) -> Sandbox:
        if point not in made:
            sandbox = Sandbox(tmp_path_factory.mktemp("stopped"))
            sandbox.write_rows(rows_of(1))
            sandbox.write_manifest()
            assert sandbox.run("r1").code == 0
            sandbox.write_rows(rows_of(2))
            killed = ended(sandbox.composed(sandbox.folder / "died.txt", f"kill@{point}", sandbox.words("r2")))
            assert killed.code == -9, killed
            made[point] = sandbox.folder
        copy = tmp_path_factory.mktemp("copy") / "all"
        shutil.copytree(made[point], copy, symlinks=True)
        return Sandbox(copy)

    return of


def words(sandbox: Sandbox, verb: str, *rest: str) -> list[str]:
    operation = identity(sandbox)
    return ["ops", verb, operation, *REVIEW, *rest, "--format", "json"]


def identity(sandbox: Sandbox, run_id: str = "r2") -> str:
    found = operation_of(sandbox, run_id)
    assert found is not None
    return str(found.stream)


def state(sandbox: Sandbox, run_id: str = "r2") -> State:
    found = operation_of(sandbox, run_id)
    assert found is not None
    return found.operation.state


def sure(sandbox: Sandbox) -> tuple[str, ...]:
    return (*EVIDENCE, "--yes", identity(sandbox)[:8])


def act(sandbox: Sandbox, verb: str, *rest: str) -> Ended:
    return sandbox.dpone(*words(sandbox, verb, *rest))


def check_ended(sandbox: Sandbox, generation: int) -> None:
    """Retired, the target free and as it was, nothing under a name that a late statement knows; the next run loads."""
    found = operation_of(sandbox, "r2")
    assert found is not None
    assert found.operation.state is State.RETIRED
    assert found.operation.retired is not None
    assert found.operation.retired.review is not None
    assert (found.slot.holder, found.slot.guard) == (None, None)
    assert engine_rows(sandbox.engine) == rows_of(generation)
    generations = [found.operation.generation.id] if found.operation.generation is not None else []
    names = engine_tables(sandbox.engine)
    for name in names:
        for minted in generations:
            assert (
                not is_candidate_name(name, "rows", minted) or is_retired_name(name) or name in found.slot.retirements
            )
    listed = {"rows", *found.slot.retirements, *(one for kept in found.slot.kept for one in kept.names.values())}
    assert set(names) <= listed, "a table that the ledger does not list"
    assert ledger_findings(sandbox) == []
    refused = sandbox.run("r2")
    assert (refused.code, refused.result["error_code"]) == (1, "DPONE_REPLAY_RETIRED")
    sandbox.write_rows(rows_of(3))
    assert sandbox.run("r3").code == 0
    assert engine_rows(sandbox.engine) == rows_of(3)
    assert set(engine_tables(sandbox.engine)) == {"rows", *_kept(sandbox)}


def _kept(sandbox: Sandbox) -> set[str]:
    found = operation_of(sandbox, "r3")
    assert found is not None
    return {name for one in found.slot.kept for name in one.names.values()}


@pytest.mark.parametrize(
    ("point", "generation"),
    [
        ("fill#1:middle", 1),
        ("append CapsuleWritten#1:after", 1),
        ("swap#1:before", 1),
        ("swap#1:after", 2),
        ("rename#1:after", 2),
        ("observe-target#1:after", 2),
        ("append ReaderGuardReleased#1:after", 2),
    ],
)
def test_ended_where_it_stopped(stopped: BeforeStaged, point: str, generation: int) -> None:
    sandbox = stopped(point)
    refused = act(sandbox, "retire")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")
    assert refused.details["next"] == f"dpone ops resume {identity(sandbox)}"
    assert refused.details["known"]["replicas"].keys() == {"embedded"}
    assert state(sandbox) is not State.RETIRED

    done = act(sandbox, "retire", *sure(sandbox))
    assert done.code == 0, done
    assert done.result["slot_free"] is True
    again = act(sandbox, "retire", *sure(sandbox))
    assert (again.code, again.result["changes"]) == (0, [])
    check_ended(sandbox, generation)


@pytest.mark.parametrize("point", ["swap#1:before", "swap#1:after", "fill#1:middle"])
def test_killed_anywhere_the_same_command_ends_it(stopped: BeforeStaged, point: str, tmp_path: Path) -> None:
    recorded = stopped(point)
    done = ended(recorded.composed(tmp_path / "whole", "none", words(recorded, "retire", *sure(recorded))))
    assert done.code == 0, done
    points = [line.removeprefix("point ") for line in record_of(tmp_path / "whole").lines if line.startswith("point ")]
    changing = [point for point in points if point.startswith(("append", "rename"))]
    assert changing
    for number, at in enumerate(changing):
        sandbox = stopped(point)
        killed = ended(
            sandbox.composed(tmp_path / f"k{number}", f"kill@{at}", words(sandbox, "retire", *sure(sandbox)))
        )
        assert killed.code == -9, (at, killed)
        finished = act(sandbox, "retire", *sure(sandbox))
        assert finished.code == 0, (at, finished)
        assert state(sandbox) is State.RETIRED
        assert engine_rows(sandbox.engine) == rows_of(2 if point == "swap#1:after" else 1)
        assert ledger_findings(sandbox) == []


def test_what_cannot_recover_needs_no_evidence(stopped: BeforeStaged) -> None:
    sandbox = stopped("swap#1:before")
    found = operation_of(sandbox, "r2")
    assert found is not None
    assert found.operation.generation is not None
    with opened_engine(sandbox.engine) as ask:
        ask(f"DROP TABLE db.{found.operation.generation.candidate} SYNC")
    stuck = sandbox.run("r2")
    assert (stuck.code, stuck.details["cause"]) == (1, "DPONE_PUBLICATION_UNKNOWN")
    done = act(sandbox, "retire", "--yes", identity(sandbox))
    assert done.code == 0, done
    check_ended(sandbox, 1)


def test_a_target_altered_by_hand_needs_evidence(stopped: BeforeStaged) -> None:
    sandbox = stopped("swap#1:before")
    with opened_engine(sandbox.engine) as ask:
        ask("RENAME TABLE db.rows TO db.aside")
        ask("CREATE TABLE db.rows (x UInt8) ENGINE = MergeTree ORDER BY x")
    refused = act(sandbox, "retire", "--yes", identity(sandbox))
    assert (refused.code, refused.result["error_code"]) == (1, "DPONE_PUBLICATION_FOREIGN_TARGET")
    done = act(sandbox, "retire", *sure(sandbox))
    assert done.code == 0, done
    assert done.result["live_generation"] is None
    assert "aside" in engine_tables(sandbox.engine)
    blocked = sandbox.run("r3")
    assert blocked.result["error_code"] == "DPONE_PUBLICATION_FOREIGN_TARGET"
    with opened_engine(sandbox.engine) as ask:
        ask("DROP TABLE db.rows SYNC")
        ask("RENAME TABLE db.aside TO db.rows")
    assert sandbox.run("r3").code == 0


def test_nobody_is_asked_without_a_terminal(stopped: BeforeStaged) -> None:
    sandbox = stopped("swap#1:before")
    for rest in (EVIDENCE, (*EVIDENCE, "--yes", "00000000"), (*EVIDENCE, "--yes", identity(sandbox)[:7])):
        refused = act(sandbox, "retire", *rest)
        assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID"), rest
    text = sandbox.dpone("ops", "retire", identity(sandbox), *REVIEW, *EVIDENCE)
    assert text.code == 2
    assert "To be appended:" in text.out
    assert "embedded" in text.out
    assert state(sandbox) is State.DISPATCHED


def test_a_completed_operation_has_nothing_to_end(stopped: BeforeStaged) -> None:
    sandbox = stopped("swap#1:before")
    refused = sandbox.dpone("ops", "retire", identity(sandbox, "r1"), *REVIEW, *EVIDENCE, "--format", "json")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")


def test_a_guard_is_released_by_a_person_and_the_same_command_completes(stopped: BeforeStaged) -> None:
    sandbox = stopped("observe-target#1:after")
    refused = act(sandbox, "release-guard", "--yes", identity(sandbox))
    assert (refused.code, refused.details["next"]) == (2, f"dpone ops resume {identity(sandbox)}")
    done = act(sandbox, "release-guard", *sure(sandbox))
    assert (done.code, done.result["guard_held"]) == (0, False), done
    again = act(sandbox, "release-guard", *sure(sandbox))
    assert (again.code, again.result["changes"]) == (0, [])
    assert sandbox.run("r3").result["error_code"] == "DPONE_REPLAY_TARGET_BLOCKED"
    assert sandbox.run("r2").code == 0
    assert ledger_findings(sandbox) == []


@pytest.mark.parametrize("point", ["swap#1:after", "append ReaderGuardReleased#1:after"])
def test_there_is_no_guard_to_release(stopped: BeforeStaged, point: str) -> None:
    sandbox = stopped(point)
    refused = act(sandbox, "release-guard", *sure(sandbox))
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")


def test_two_retire_at_once(stopped: BeforeStaged) -> None:
    sandbox = stopped("swap#1:after")
    both = [sandbox.start(words(sandbox, "retire", *sure(sandbox))) for _ in range(2)]
    codes = sorted(ended(one).code for one in both)
    assert codes[0] == 0
    assert state(sandbox) is State.RETIRED
    assert ledger_findings(sandbox) == []
    assert engine_rows(sandbox.engine) == rows_of(2)


@pytest.mark.parametrize("point", ["swap#1:after", "fill#1:middle"])
def test_a_run_and_a_retire_at_once(stopped: BeforeStaged, point: str) -> None:
    """One of them wins; whatever it is, the ledger is sound and the table is one generation's."""
    sandbox = stopped(point)
    run = sandbox.start(sandbox.words("r2"))
    retired = sandbox.start(words(sandbox, "retire", *sure(sandbox)))
    outcomes = ended(run), ended(retired)
    assert any(one.code == 0 for one in outcomes), outcomes
    final = state(sandbox)
    assert final in (State.COMPLETE, State.RETIRED)
    assert ledger_findings(sandbox) == []
    assert engine_rows(sandbox.engine) in (rows_of(1), rows_of(2))
    found = operation_of(sandbox, "r2")
    assert found is not None
    assert (found.slot.holder, found.slot.guard) == (None, None)
