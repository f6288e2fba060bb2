"""Every row of the runbook that needs no servers, and the table that leads to the rows."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from dpone.domain.operation import State
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, opened_engine, rows_of
from tests.crash.evidence import ledger_findings, operation_of

from .page import linked, rows, words

ON_SERVERS = {"replica-away", "replica-rebuilt", "keeper-lost"}
"""These are in test_cluster_rows.py."""
EXECUTED: set[str] = {
    "interrupted",
    "died-while-staging",
    "engine-in-use",
    "disk-full",
    "not-observed",
    "guard-kept",
    "table-nowhere",
    "altered",
    "wrong-data",
    "blocked",
    "manifest-changed",
    "skip",
    "corrupt",
    "ledger-lost",
}


class Night:
    """Run r1 completed, generation 1 is live; the source has generation 2 since."""

    def __init__(self, folder: Path) -> None:
        self.sandbox = Sandbox(folder)
        self.sandbox.write_manifest()
        self.sandbox.write_rows(rows_of(1))
        assert self.sandbox.run("r1").code == 0
        self.sandbox.write_rows(rows_of(2))
        self.said = ""

    def stopped(self, action: str, run_id: str = "r2") -> None:
        """The run was killed at a point, or ended badly."""
        sandbox = self.sandbox
        died = ended(sandbox.composed(sandbox.folder / "died.txt", action, sandbox.words(run_id)))
        assert died.code != 0, died

    def operation(self, run_id: str = "r2") -> str:
        found = operation_of(self.sandbox, run_id)
        assert found is not None
        return str(found.stream)

    def state(self, run_id: str = "r2") -> State:
        found = operation_of(self.sandbox, run_id)
        assert found is not None
        return found.operation.state

    def seen(self, code: str, cause: str | None = None) -> None:
        """What the person sees before opening the page."""
        again = self.sandbox.run("r2")
        assert again.code != 0
        assert (again.result["error_code"], again.details.get("cause")) == (code, cause), again

    def explained(self, text: str, run_id: str = "r2") -> None:
        told = self.sandbox.dpone("ops", "explain", self.operation(run_id))
        assert text in " ".join(told.out.split()), told.out

    def follow(self, row: str, fails: Mapping[int, int] | None = None, **meant: str) -> list[Ended]:
        """Type the row's commands; ``fails`` are those (from 0) that may end with another code than 0."""
        sandbox = self.sandbox
        known = {
            "MANIFEST": str(sandbox.manifest),
            "DAG": "d",
            "RUN": "r2",
            "NEXT": "r3",
            "NAME": "Ada",
            "TEXT": "it was agreed on the phone",
            "DATABASE.TABLE": "db.rows",
            "LEDGER": str(sandbox.ledger),
            **meant,
        }
        typed = []
        for number, line in enumerate(rows()[row]):
            program, *rest = words(line, known)
            if program == "cp":
                shutil.copy(*rest)
                continue
            if program == "rm":
                assert rest[0] == "-f"
                for name in rest[1:]:
                    Path(name).unlink(missing_ok=True)
                continue
            assert program == "dpone"
            done = sandbox.dpone(*rest)
            assert done.code == (fails or {}).get(number, 0), (line, done)
            typed.append(done)
        return typed


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def test_every_row_is_executed_and_the_table_leads_to_each() -> None:
    assert set(rows()) == EXECUTED | ON_SERVERS
    assert sorted(linked()) == sorted(rows())


def test_interrupted(night: Night) -> None:
    night.stopped("kill@swap#1:after")
    night.explained("The same command would now establish whether the swap happened")
    night.follow("interrupted")
    assert night.state() is State.COMPLETE
    assert engine_rows(night.sandbox.engine) == rows_of(2)


def test_died_while_staging(night: Night) -> None:
    night.stopped("kill@fill#1:middle")
    night.explained("would now abandon the unfinished candidate")
    night.follow("died-while-staging")
    assert night.state("r3") is State.COMPLETE
    night.seen("DPONE_REPLAY_RETIRED")


def test_engine_in_use(night: Night) -> None:
    with opened_engine(night.sandbox.engine):
        night.seen("DPONE_ENGINE_BUSY")
    night.follow("engine-in-use")
    assert night.state() is State.COMPLETE


def test_disk_full(night: Night) -> None:
    """The space is not really gone here: the row's own remedy is a failed candidate that is given back."""
    night.sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 1_000_000}])
    assert night.sandbox.run("r2").code == 1
    night.sandbox.write_manifest()
    swept = night.follow("disk-full")[0]
    assert "dropped db.__dpone_rows_" in swept.out
    assert night.state() is State.COMPLETE


def test_not_observed(night: Night) -> None:
    night.stopped("deaf,none")
    night.explained("The new table is live and proven; evidence is still owed.")
    done = night.follow("not-observed")
    assert night.state() is State.COMPLETE
    assert done[0].out.startswith("Nothing was read again")


def test_guard_kept(night: Night) -> None:
    night.stopped("kill@observe-target#1:after")
    night.explained("would now observe the target")
    night.follow("guard-kept", OPERATION=night.operation())
    found = operation_of(night.sandbox, "r2")
    assert found is not None
    assert (found.operation.state, found.slot.guard, found.slot.holder) == (State.COMPLETE, None, None)


def test_table_nowhere(night: Night) -> None:
    night.stopped("kill@swap#1:before")
    found = operation_of(night.sandbox, "r2")
    assert found is not None
    assert found.operation.generation is not None
    with opened_engine(night.sandbox.engine) as ask:
        ask(f"DROP TABLE db.{found.operation.generation.candidate} SYNC")
    night.seen("DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE", "DPONE_PUBLICATION_UNKNOWN")
    night.follow("table-nowhere", OPERATION=night.operation())
    assert night.state("r3") is State.COMPLETE


def test_altered(night: Night) -> None:
    with opened_engine(night.sandbox.engine) as ask:
        ask("RENAME TABLE db.rows TO db.aside")
        ask("CREATE TABLE db.rows (x UInt8) ENGINE = MergeTree ORDER BY x")
    night.seen("DPONE_PUBLICATION_FOREIGN_TARGET")
    with opened_engine(night.sandbox.engine) as ask:
        ask("DROP TABLE db.rows SYNC")
        ask("RENAME TABLE db.aside TO db.rows")
    night.follow("altered")
    assert night.state() is State.COMPLETE


def test_wrong_data(night: Night) -> None:
    assert night.sandbox.run("r2").code == 0
    found = operation_of(night.sandbox, "r1")
    assert found is not None
    assert found.operation.generation is not None
    typed = night.follow("wrong-data", GENERATION=found.operation.generation.id)
    assert found.operation.generation.id in typed[1].out, "the generation can be chosen from the list"
    assert engine_rows(night.sandbox.engine) == rows_of(1)


def test_blocked(night: Night) -> None:
    night.stopped("kill@swap#1:after")
    blocked = night.sandbox.run("r3")
    assert blocked.result["error_code"] == "DPONE_REPLAY_TARGET_BLOCKED"
    holder = blocked.details["holder"]["operation_id"]
    assert holder == night.operation()
    night.follow("blocked", HOLDER=holder)
    assert (night.state("r2"), night.state("r3")) == (State.COMPLETE, State.COMPLETE)


def test_manifest_changed(night: Night) -> None:
    night.stopped("kill@swap#1:before")
    night.sandbox.write_manifest(gates=[{"id": "some", "type": "min_rows", "rows": 1}])
    night.seen("DPONE_REPLAY_IDENTITY_CONFLICT")
    night.follow("manifest-changed", OPERATION=night.operation())
    assert (night.state("r2"), night.state("r3")) == (State.COMPLETE, State.COMPLETE)


@pytest.mark.parametrize("point", ["fill#1:middle", "swap#1:after", "observe-target#1:after"])
def test_skip(night: Night, point: str) -> None:
    night.stopped(f"kill@{point}")
    night.follow("skip", OPERATION=night.operation())
    assert (night.state("r2"), night.state("r3")) == (State.RETIRED, State.COMPLETE)
    night.seen("DPONE_REPLAY_RETIRED")


def backup(night: Night) -> str:
    """As the page on backups says."""
    copy = night.sandbox.folder / "backup.sqlite"
    with sqlite3.connect(night.sandbox.ledger) as ledger:
        ledger.execute(f"VACUUM INTO '{copy}'")
    ledger.close()
    return str(copy)


def test_corrupt(night: Night) -> None:
    kept = backup(night)
    ledger = sqlite3.connect(night.sandbox.ledger)
    for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        ledger.execute(f'DROP TRIGGER "{name}"')
    ledger.execute("UPDATE stored_events SET state = replace(state, 'r1', 'rX')")
    ledger.commit()
    ledger.close()
    night.seen("DPONE_REPLAY_QUALITY_EVIDENCE_INVALID")
    night.follow("corrupt", fails={0: 1}, BACKUP=kept)
    assert night.state() is State.COMPLETE
    assert ledger_findings(night.sandbox) == []


def test_ledger_lost(night: Night) -> None:
    """A killed run leaves a log beside the ledger, which would be written into whatever takes the ledger's name."""
    kept = backup(night)
    night.stopped("kill@append StagingOpened#1:after")
    assert night.sandbox.ledger.with_name("ledger.sqlite-wal").stat().st_size
    night.sandbox.ledger.unlink()
    night.seen("DPONE_LEDGER_CORRUPT")
    night.follow("ledger-lost", BACKUP=kept)
    found = operation_of(night.sandbox, "r2")
    assert found is not None
    assert (found.operation.state, found.operation.attempt) == (State.COMPLETE, 1), "the killed attempt came back"
