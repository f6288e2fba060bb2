"""What can happen to a ledger's file, with real files: each ends in one clear sentence and loses nothing."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from dpone.domain.errors import ErrorCode, LedgerFailed
from dpone.ledger.sqlite import open_store, sqlite_url
from dpone.ledger.sqlite_file import Connections
from dpone.ledger.sqlite_schema import create_store
from dpone.ledger.store import EventLedger, open_ledger
from dpone.ledger.verify import verify_ledger

from .events import CODEC, some

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[EventLedger]:
    with open_ledger(sqlite_url(path), create=True, codec=CODEC) as ledger:
        ledger.append([some()])
        yield ledger


def fails(path: Path) -> LedgerFailed:
    with pytest.raises(LedgerFailed) as caught:
        open_ledger(sqlite_url(path), create=False, codec=CODEC).append([some()])
    error = caught.value
    assert str(path.parent) not in f"{error.what} {error.safe} {error.next}"
    assert error.next
    return error


# ------------------------------------------------------------------------------------------------- coming to be


def test_opening_never_creates(path: Path) -> None:
    error = fails(path)
    assert error.code is ErrorCode.LEDGER_UNREACHABLE
    assert "no ledger file" in error.what
    assert list(path.parent.iterdir()) == []


def test_not_even_a_file_that_vanishes_while_it_is_opened_is_created(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        Connections(path, wait_seconds=0.1).take(write=False)
    assert not path.exists()


def test_a_new_ledger_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "ledger.sqlite"
    previous = os.umask(0)
    try:
        assert create_store(path)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}
    assert list(path.parent.iterdir()) == [path]


def test_of_many_creators_one_creates(path: Path) -> None:
    gate = threading.Barrier(6)

    def create() -> tuple[bool, str]:
        gate.wait(10)
        created = create_store(path)
        with closing(open_store(path)) as recorder:
            return created, recorder.identity().ledger_id

    with ThreadPoolExecutor(6) as pool:
        got = [future.result(30) for future in [pool.submit(create) for _ in range(6)]]
    assert sorted(created for created, _ in got) == [False] * 5 + [True]
    assert len({ledger_id for _, ledger_id in got}) == 1
    assert [item.name for item in path.parent.iterdir() if item.name.endswith(".new")] == []


def test_an_existing_ledger_is_not_made_anew(ledger: EventLedger, path: Path) -> None:
    with open_ledger(sqlite_url(path), create=True, codec=CODEC) as again:
        assert again.ledger_id == ledger.ledger_id
        assert again.position() == 1


def test_no_new_ledger_beside_an_old_ones_log(path: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"left behind")
    with pytest.raises(LedgerFailed, match=r"ledger\.sqlite-wal is still there") as caught:
        create_store(path)
    assert caught.value.code is ErrorCode.LEDGER_CORRUPT
    assert not path.exists()


# --------------------------------------------------------------------------------------------- not a ledger, or torn


@pytest.mark.parametrize("content", [b"", b"not a database, by far" * 100, b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert fails(path).code is ErrorCode.LEDGER_CORRUPT
    assert path.read_bytes() == content


def test_a_database_that_is_no_ledger(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE stored_events (originator_id TEXT)")
    error = fails(path)
    assert error.code is ErrorCode.LEDGER_CORRUPT
    assert "is not a dpone ledger" in error.what


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM ledger_identity",
        "INSERT INTO ledger_identity SELECT * FROM ledger_identity",
        "UPDATE ledger_identity SET epoch = 'one'",
        "ALTER TABLE ledger_identity RENAME COLUMN epoch TO age",
        "ALTER TABLE stored_events ADD COLUMN more TEXT",
        "DROP TABLE ledger_identity",
    ],
)
def test_another_schema(path: Path, change: str) -> None:
    create_store(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema=ON")
        raw.execute("PRAGMA legacy_alter_table=ON")
        raw.execute(change)
    assert fails(path).code is ErrorCode.LEDGER_CORRUPT


def test_a_truncated_file(path: Path) -> None:
    with open_ledger(sqlite_url(path), create=True, codec=CODEC) as ledger:
        for _ in range(100):
            ledger.append([some()])
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(LedgerFailed) as caught, open_ledger(sqlite_url(path), create=False, codec=CODEC) as torn:
        verify_ledger(torn)
    assert caught.value.code is ErrorCode.LEDGER_CORRUPT


def test_a_folder_in_its_place(path: Path) -> None:
    path.mkdir()
    assert "not a file" in fails(path).what


def test_a_newer_format_is_refused_before_anything_is_written(path: Path) -> None:
    create_store(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE ledger_identity SET format = 2")
        raw.execute("ALTER TABLE ledger_identity ADD COLUMN unheard_of TEXT")
    before = path.read_bytes()
    error = fails(path)
    assert error.code is ErrorCode.LEDGER_TOO_NEW
    assert path.read_bytes() == before


def test_a_ledger_that_became_newer_while_open(ledger: EventLedger, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE ledger_identity SET format = 2")
    with pytest.raises(LedgerFailed) as caught:
        ledger.append([some()])
    assert caught.value.code is ErrorCode.LEDGER_TOO_NEW
    assert ledger.position() == 1


# ------------------------------------------------------------------------------------------- changed under our hands


def test_a_ledger_that_vanishes(ledger: EventLedger, path: Path) -> None:
    path.unlink()
    for use in (lambda: ledger.append([some()]), lambda: ledger.read(uuid4()), ledger.position):
        with pytest.raises(LedgerFailed, match="is gone") as caught:
            use()
        assert caught.value.code is ErrorCode.LEDGER_UNREACHABLE
    assert not path.exists()


def test_a_ledger_that_is_replaced(ledger: EventLedger, path: Path, tmp_path: Path) -> None:
    create_store(tmp_path / "other.sqlite")
    (tmp_path / "other.sqlite").rename(path)
    before = path.read_bytes()
    with pytest.raises(LedgerFailed, match="was replaced") as caught:
        ledger.append([some()])
    assert caught.value.code is ErrorCode.LEDGER_CORRUPT
    assert path.read_bytes() == before


def test_a_ledger_that_is_replaced_in_the_middle_of_an_append(ledger: EventLedger, path: Path, tmp_path: Path) -> None:
    """Committed, but into a file that nobody will open again: that must not pass for success."""
    create_store(tmp_path / "other.sqlite")
    store = ledger.recorder._store  # type: ignore[attr-defined]
    with pytest.raises(LedgerFailed, match="was replaced"), store.transaction(commit=True):
        (tmp_path / "other.sqlite").rename(path)


def test_another_epoch_takes_no_append_from_us(ledger: EventLedger, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE ledger_identity SET epoch = 2")
    with pytest.raises(LedgerFailed, match="was replaced"):
        ledger.append([some()])
    assert ledger.position() == 1


def test_a_sealed_ledger_takes_no_append_from_anybody(ledger: EventLedger, path: Path) -> None:
    with open_ledger(sqlite_url(path), create=False, codec=CODEC) as other:
        other.recorder.seal()
    with pytest.raises(LedgerFailed, match="is sealed") as caught:
        ledger.append([some()])
    assert caught.value.code is ErrorCode.LEDGER_CORRUPT
    assert "sealed" in fails(path).what
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        with pytest.raises(sqlite3.IntegrityError, match="sealed"):
            raw.execute("INSERT INTO stored_events VALUES ('a', 1, 'Noted', 'x')")
        with pytest.raises(sqlite3.IntegrityError, match="sealed"):
            raw.execute("UPDATE ledger_identity SET sealed = 0")
    assert verify_ledger(ledger).passed


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE stored_events SET topic = 'Other'",
        "DELETE FROM stored_events",
        "INSERT INTO stored_events VALUES ('a', 2, 'Noted', 'x')",
        "INSERT OR REPLACE INTO stored_events SELECT originator_id, 1, 'Noted', 'x' FROM stored_events",
    ],
)
def test_the_file_itself_refuses_to_forget(ledger: EventLedger, path: Path, change: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw, pytest.raises(sqlite3.IntegrityError):
        raw.execute(change)
    assert verify_ledger(ledger).passed
    assert ledger.position() == 1


# --------------------------------------------------------------------------------------------------------- locks


def test_a_lock_that_stays_is_a_clear_error_within_the_bound(path: Path) -> None:
    create_store(path)
    recorder = open_store(path, wait_seconds=0.3)
    with EventLedger(recorder, CODEC, recorder.identity()) as ledger:
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            raw.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            with pytest.raises(LedgerFailed, match="locked by another process") as caught:
                ledger.append([some()])
            assert 0.25 < time.monotonic() - started < 5
        assert caught.value.code is ErrorCode.LEDGER_UNREACHABLE
        ledger.append([some()])
        assert ledger.position() == 1


def test_a_lock_that_goes_is_waited_for(ledger: EventLedger, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, raw.execute, ("ROLLBACK",))
        timer.start()
        ledger.append([some()])
        timer.join()
    assert ledger.position() == 2


def test_readers_do_not_hold_writers_up(ledger: EventLedger, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN")
        raw.execute("SELECT count(*) FROM stored_events").fetchone()
        started = time.monotonic()
        ledger.append([some()])
        assert time.monotonic() - started < 5


def test_what_is_asked_of_the_disk(ledger: EventLedger) -> None:
    with ledger.recorder._store.transaction(commit=False) as c:  # type: ignore[attr-defined]
        assert c.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL: every commit is synced
        assert c.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
