"""What the upgrade page promises, on stores as earlier releases wrote them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.sandbox import Sandbox, ended, engine_rows, rows_of
from tests.crash.evidence import ledger_findings


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Run r1 completed; r2 has swapped and owes its evidence; the source has generation 2."""
    made = Sandbox(tmp_path)
    made.write_manifest()
    made.write_rows(rows_of(1))
    assert made.run("r1").code == 0
    made.write_rows(rows_of(2))
    killed = ended(made.composed(tmp_path / "died", "kill@swap#1:after", made.words("r2")))
    assert killed.code == -9
    return made


def test_a_newer_store_is_refused_before_anything_is_written(sandbox: Sandbox) -> None:
    with closing(sqlite3.connect(sandbox.ledger, isolation_level=None)) as raw:
        raw.execute("UPDATE ledger_identity SET format = format + 1")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = sandbox.ledger.read_bytes()
    for words in (
        sandbox.words("r2"),
        ["ops", "list", "--format", "json"],
        ["ops", "hold", "db.rows", "--reviewed-by", "Ada", "--reason", "x", "--format", "json"],
        ["audit", "verify", "--format", "json"],
    ):
        refused = sandbox.dpone(*words)
        assert (refused.code, refused.result["error_code"]) == (1, "DPONE_LEDGER_TOO_NEW"), words
    assert sandbox.ledger.read_bytes() == before
    assert engine_rows(sandbox.engine) == rows_of(2)


def test_an_operation_without_a_target_observation_completes_without_one(tmp_path: Path) -> None:
    """Capsule v1: what was sealed is what is owed."""
    sandbox = Sandbox(tmp_path)
    sandbox.write_rows(rows_of(1))
    sandbox.write_manifest(acceptance={"capture": {"source": True, "staged": True, "target": False}})
    killed = ended(sandbox.composed(tmp_path / "died", "kill@swap#1:after", sandbox.words("r1")))
    assert killed.code == -9
    done = sandbox.run("r1")
    assert done.code == 0, done
    evidence = done.result["details"]["reconciliation_metrics"]["quality_replay"]
    assert evidence["format"] == "dpone.quality.replay.v1"
    assert "target" not in evidence["acceptance"]
    assert ledger_findings(sandbox) == []
