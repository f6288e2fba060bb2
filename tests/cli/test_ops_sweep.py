"""``dpone ops sweep``: only what the ledger proves to be ours and unused is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpone.domain.names import candidate_name
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, engine_tables, opened_engine, rows_of
from tests.crash.evidence import ledger_findings, operation_of


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Two generations were published: the second is live, the first is kept."""
    made = Sandbox(tmp_path)
    made.write_manifest()
    for generation in (1, 2):
        made.write_rows(rows_of(generation))
        assert made.run(f"r{generation}").code == 0
    return made


def sweep(sandbox: Sandbox, *rest: str) -> dict[str, Any]:
    """By table: what was or may be done with it."""
    done: Ended = sandbox.dpone("ops", "sweep", *rest, "--format", "json")
    assert done.code == 0, done
    return {item["table"].removeprefix("db."): item for item in done.result["items"]}


def fail_gates(sandbox: Sandbox) -> None:
    """Run r3 ends at its gates: its candidate stands, and no retirement lists it."""
    sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 1_000_000}])
    failed = sandbox.run("r3")
    assert (failed.code, failed.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED"), failed


def test_a_kept_generation_is_left(sandbox: Sandbox) -> None:
    found = sweep(sandbox, "db.rows", "--yes")
    assert [(one["action"], one["reason"]) for one in found.values()] == [("left", "a kept generation")]
    assert len(engine_tables(sandbox.engine)) == 2


def test_a_failed_candidate_is_dropped_on_confirmation_only(sandbox: Sandbox) -> None:
    fail_gates(sandbox)
    before = engine_tables(sandbox.engine)
    listed = sweep(sandbox)
    assert sorted(one["action"] for one in listed.values()) == ["left", "may be dropped"]
    assert engine_tables(sandbox.engine) == before, "nothing is dropped without a yes"
    done = sweep(sandbox, "--yes")
    assert sorted(one["action"] for one in done.values()) == ["dropped", "left"]
    assert len(engine_tables(sandbox.engine)) == 2
    assert engine_rows(sandbox.engine) == rows_of(2)
    assert ledger_findings(sandbox) == []
    found = operation_of(sandbox, "r3")
    assert found is not None
    assert found.slot.retirements == {}


def test_what_a_running_operation_owns_is_left(sandbox: Sandbox) -> None:
    killed = ended(sandbox.composed(sandbox.folder / "died", "kill@swap#1:before", sandbox.words("r3")))
    assert killed.code == -9
    found = sweep(sandbox, "--yes")
    assert {one["action"] for one in found.values()} == {"left"}
    assert sandbox.run("r3").code == 0


def test_strangers_are_left_whatever_they_are_called(sandbox: Sandbox) -> None:
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert found.operation.generation is not None
    unknown = candidate_name("rows", "0" * 32, 1, 1)
    disguised = candidate_name("rows", found.operation.generation.id, 7, 7)
    with opened_engine(sandbox.engine) as ask:
        for name in (unknown, disguised):
            ask(f"CREATE TABLE db.`{name}` (x UInt8) ENGINE = MergeTree ORDER BY x")
    swept = sweep(sandbox, "--yes")
    assert (swept[unknown]["action"], swept[unknown]["reason"]) == ("left", "this ledger did not make it")
    assert swept[disguised]["reason"] == "another table than the one that was recorded"
    assert {unknown, disguised} <= set(engine_tables(sandbox.engine))


def test_the_live_table_under_a_name_of_ours_is_left(sandbox: Sandbox) -> None:
    """Somebody renamed it: it is still the live generation."""
    found = operation_of(sandbox, "r2")
    assert found is not None
    assert found.operation.generation is not None
    name = candidate_name("rows", found.operation.generation.id, 1, 1)
    with opened_engine(sandbox.engine) as ask:
        ask(f"RENAME TABLE db.rows TO db.`{name}`")
    swept = sweep(sandbox, "--yes")
    assert swept[name]["reason"] == "a table that is live or kept under another name"
    assert name in engine_tables(sandbox.engine)


@pytest.mark.parametrize("point", ["drop#1:before", "drop#1:after", "append TableRetired#1:before"])
def test_killed_it_goes_on(sandbox: Sandbox, point: str) -> None:
    """A candidate that no retirement lists: its run was retired while nobody could look."""
    fail_gates(sandbox)
    words = ["ops", "sweep", "--yes", "--format", "json"]
    killed = ended(sandbox.composed(sandbox.folder / "k", f"kill@{point}", words))
    assert killed.code == -9, killed
    sweep(sandbox, "--yes")
    assert len(engine_tables(sandbox.engine)) == 2
    assert ledger_findings(sandbox) == []
    sandbox.write_manifest()
    assert sandbox.run("r3").code == 0
