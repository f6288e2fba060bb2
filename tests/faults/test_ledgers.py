"""A ledger that lies: older than its target, cut by one byte, read-only, on a full disk. The target contradicts it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.sandbox import Ended, Sandbox, engine_rows, engine_tables, rows_of
from tests.crash.evidence import ledger_findings
from tests.ledger.test_sqlite_disks import needs_mount

OLDER = "an older copy of itself"


def copied_ledger(sandbox: Sandbox) -> Path:
    """What a backup taken now would hold."""
    place = sandbox.folder / "backup"
    place.mkdir()
    for part in sandbox.home.glob("ledger.sqlite*"):
        shutil.copy(part, place)
    return place


def put_back(sandbox: Sandbox, place: Path) -> None:
    """Restore by hand, as nobody should."""
    for part in sandbox.home.glob("ledger.sqlite*"):
        part.unlink()
    for part in place.iterdir():
        shutil.copy(part, sandbox.home)


@pytest.mark.parametrize("later", [1, 2], ids=["one generation", "two generations"])
def test_a_ledger_that_went_back_in_time_is_contradicted_by_its_target(sandbox: Sandbox, later: int) -> None:
    assert sandbox.run("r1").code == 0
    older = copied_ledger(sandbox)
    for generation in range(2, 2 + later):
        sandbox.write_rows(rows_of(generation))
        assert sandbox.run(f"r{generation}").code == 0
    before = engine_tables(sandbox.engine)
    newest = sandbox.folder / "newest"
    shutil.copytree(sandbox.home, newest)
    put_back(sandbox, older)

    for run_id in (f"r{1 + later}", "r9"):
        refused = sandbox.run(run_id)
        assert (refused.code, refused.result["error_code"]) == (1, "DPONE_PUBLICATION_FOREIGN_TARGET")
        assert OLDER in refused.result["errors"][0]
        assert "newest" in refused.details["next"]
    assert sandbox.run("r1").result["error_code"] == "DPONE_REPLAY_QUALITY_EVIDENCE_MISMATCH"
    assert engine_tables(sandbox.engine) == before
    assert engine_rows(sandbox.engine) == rows_of(1 + later)

    for part in sandbox.home.glob("ledger.sqlite*"):
        part.unlink()
    for part in newest.glob("ledger.sqlite*"):
        shutil.copy(part, sandbox.home)
    assert sandbox.run(f"r{1 + later}").code == 0


def test_a_strangers_table_is_not_taken_for_an_older_ledger(sandbox: Sandbox) -> None:
    from tests.cli.sandbox import opened_engine

    assert sandbox.run("r1").code == 0
    with opened_engine(sandbox.engine) as ask:
        ask("RENAME TABLE db.rows TO db.away")
        ask("CREATE TABLE db.rows (id UInt32) ENGINE = MergeTree ORDER BY id")
    refused = sandbox.run("r2")
    assert refused.result["error_code"] == "DPONE_PUBLICATION_FOREIGN_TARGET"
    assert OLDER not in refused.result["errors"][0]


def test_a_ledger_cut_by_one_byte_is_never_believed_whole(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    os.truncate(sandbox.ledger, sandbox.ledger.stat().st_size - 1)
    repeated = sandbox.run("r1")
    verified = sandbox.dpone("audit", "verify", "--format", "json")
    assert verified.code == 1
    assert repeated.code == 1, repeated
    assert repeated.result["error_code"] in ("DPONE_LEDGER_CORRUPT", "DPONE_REPLAY_QUALITY_EVIDENCE_INVALID")
    assert engine_rows(sandbox.engine) == rows_of(1)


DISKS = {"full": "size=1500k", "engine's full": "size=2500k"}


@needs_mount
@pytest.mark.parametrize("options", DISKS.values(), ids=DISKS)
def test_a_full_disk_ends_in_a_sentence_and_the_same_command_finishes(sandbox: Sandbox, options: str) -> None:
    """The home is on a small disk; the second time on one that is large enough, with what was kept."""
    sandbox.write_rows(rows_of(1, 20_000))
    stopped = on_a_disk(sandbox, options)
    assert stopped.code == 1, stopped
    code = stopped.result["error_code"]
    assert code in ("DPONE_STORAGE_FULL", "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE"), stopped
    assert stopped.details["next"]
    finished = sandbox.run("r1")
    assert finished.code == 0, finished
    assert engine_rows(sandbox.engine) == rows_of(1, 20_000)
    assert ledger_findings(sandbox) == []


def on_a_disk(sandbox: Sandbox, options: str) -> Ended:
    """``dpone run`` with its home on a disk of its own, whose content is copied back afterwards."""
    import sys

    sandbox.home.mkdir(exist_ok=True)
    home, kept = str(sandbox.home), str(sandbox.folder / "kept")
    script = (
        'mount -t tmpfs -o "$1" tmpfs "$2"; shift; home=$1; kept=$2; shift 2; '
        '"$@"; code=$?; cp -a "$home/." "$kept"; exit $code'
    )
    (sandbox.folder / "kept").mkdir()
    dpone = str(Path(sys.executable).with_name("dpone"))
    words = ["sh", "-c", script, "sh", options, home, kept, dpone, *sandbox.words("r1")]
    done = subprocess.run(
        ["unshare", "-Urm", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd="/",
        env=sandbox.variables(),
    )
    shutil.copytree(kept, home, dirs_exist_ok=True)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    return Ended(done.returncode, done.stdout, done.stderr)
