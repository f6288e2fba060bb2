"""``dpone ops rollback``: a kept generation is published again, by an ordinary operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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


def generations(sandbox: Sandbox) -> list[str]:
    """Live first, then the kept ones."""
    listed = sandbox.dpone("ops", "rollback", "db.rows", "--format", "json")
    assert listed.code == 0, listed
    return [item["generation"] for item in listed.result["items"]]


def roll_back(sandbox: Sandbox, generation: str, *rest: str) -> Ended:
    return sandbox.dpone("ops", "rollback", "db.rows", "--to", generation, *rest, "--format", "json")


def test_the_kept_generation_is_live_again_as_a_new_one(sandbox: Sandbox) -> None:
    live, kept = generations(sandbox)
    done = roll_back(sandbox, kept[:8], "--reviewed-by", "Ada", "--reason", "wrong prices")
    assert done.code == 0, done
    assert (done.document["dag_id"], done.document["process"]) == ("manual", "rollback")
    assert done.result["extracted_rows"] == 300
    assert engine_rows(sandbox.engine) == rows_of(1)
    now = generations(sandbox)
    assert now[0] not in (live, kept)
    assert now[1:] == [live, kept]
    again = roll_back(sandbox, kept[:8])
    assert (again.code, again.result["extracted_rows"], again.document["attempts"]) == (0, 0, 2)
    assert again.details["operation_id"] == done.details["operation_id"]
    listed = sandbox.dpone("ops", "list", "--format", "json").result["items"]
    assert [item["process"] for item in listed] == ["load", "load", "rollback"]
    assert "reviewed by Ada: wrong prices" in listed[-1]["task_id"] or listed[-1]["attempt"] == 2
    assert ledger_findings(sandbox) == []

    forward = roll_back(sandbox, live)
    assert forward.code == 0, forward
    assert engine_rows(sandbox.engine) == rows_of(2)
    sandbox.write_rows(rows_of(3))
    assert sandbox.run("r3").code == 0
    assert set(engine_tables(sandbox.engine)) == {"rows", next(n for n in engine_tables(sandbox.engine) if n != "rows")}


@pytest.mark.parametrize("point", ["fill#1:middle", "swap#1:after", "observe-target#1:after"])
def test_killed_it_is_the_same_operation(sandbox: Sandbox, point: str) -> None:
    kept = generations(sandbox)[1]
    words = ["ops", "rollback", "db.rows", "--to", kept, "--format", "json"]
    assert ended(sandbox.composed(sandbox.folder / "k", f"kill@{point}", words)).code == -9
    found = operation_of(sandbox, next(_rollbacks(sandbox)))
    assert found is not None
    again = sandbox.dpone("ops", "resume", str(found.stream), "--format", "json")
    assert again.code == 0, again
    assert roll_back(sandbox, kept).details["operation_id"] == str(found.stream)
    assert engine_rows(sandbox.engine) == rows_of(1)
    assert ledger_findings(sandbox) == []


def _rollbacks(sandbox: Sandbox) -> Iterator[str]:
    items = sandbox.dpone("ops", "list", "--format", "json").result["items"]
    return (item["run_id"] for item in items if item["process"] == "rollback")


def test_a_kept_table_that_was_changed_is_not_published(sandbox: Sandbox) -> None:
    kept = generations(sandbox)[1]
    table = next(name for name in engine_tables(sandbox.engine) if name.endswith("_pred"))
    with opened_engine(sandbox.engine) as ask:
        ask(f"ALTER TABLE db.`{table}` DELETE WHERE id = 5 SETTINGS mutations_sync = 2")
    refused = roll_back(sandbox, kept)
    assert (refused.code, refused.result["error_code"]) == (1, "DPONE_SOURCE_CHANGED"), refused
    assert engine_rows(sandbox.engine) == rows_of(2)


def test_a_kept_table_that_is_gone_is_not_published(sandbox: Sandbox) -> None:
    kept = generations(sandbox)[1]
    table = next(name for name in engine_tables(sandbox.engine) if name.endswith("_pred"))
    with opened_engine(sandbox.engine) as ask:
        ask(f"DROP TABLE db.`{table}` SYNC")
    refused = roll_back(sandbox, kept)
    assert (refused.code, refused.result["error_code"]) == (1, "DPONE_SOURCE_UNREADABLE"), refused
    assert engine_rows(sandbox.engine) == rows_of(2)


def test_what_is_not_kept_is_refused(sandbox: Sandbox) -> None:
    live = generations(sandbox)[0]
    for wanted in (live, "00000000", "xyz"):
        refused = roll_back(sandbox, wanted)
        assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID"), wanted
    half = roll_back(sandbox, live, "--reason", "x")
    assert (half.code, half.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")
