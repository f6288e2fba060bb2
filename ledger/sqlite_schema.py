"""The SQLite store's tables and guards, and how a new store comes into being: all at once or not at all.

``stored_events`` keeps the event sourcing library's names and columns. The guards make the file itself refuse what no
ledger may do: change or remove an event, leave a gap in a stream, or take an event after it was sealed.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from ..domain.errors import ErrorCode, LedgerFailed
from .recorder import STORE_FORMAT, LedgerIdentity
from .sqlite_faults import TAKEN, explain

STORED_EVENTS: Final = (
    "CREATE TABLE IF NOT EXISTS stored_events (originator_id TEXT, originator_version INTEGER, topic TEXT, "
    "state BLOB, PRIMARY KEY (originator_id, originator_version))"
)
STORED_EVENTS_COLUMNS: Final = (
    ("originator_id", "TEXT", 1),
    ("originator_version", "INTEGER", 2),
    ("topic", "TEXT", 0),
    ("state", "BLOB", 0),
)
IDENTITY: Final = (
    "CREATE TABLE ledger_identity (ledger_id TEXT NOT NULL, epoch INTEGER NOT NULL, format INTEGER NOT NULL, "
    "sealed INTEGER NOT NULL CHECK (sealed IN (0, 1)))"
)
IDENTITY_COLUMNS: Final = ("ledger_id", "epoch", "format", "sealed")
GUARDS: Final = {
    "stored_events_no_update": (
        "CREATE TRIGGER stored_events_no_update BEFORE UPDATE ON stored_events "
        "BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"
    ),
    "stored_events_no_delete": (
        "CREATE TRIGGER stored_events_no_delete BEFORE DELETE ON stored_events "
        "BEGIN SELECT RAISE(ABORT, 'events are never removed'); END"
    ),
    # One trigger for all three: each more of them costs every append. INSERT OR REPLACE would remove an event without a
    # word to the delete trigger, so a taken key is refused here already.
    "stored_events_only_next": (
        "CREATE TRIGGER stored_events_only_next BEFORE INSERT ON stored_events BEGIN SELECT CASE "
        "WHEN EXISTS (SELECT 1 FROM ledger_identity WHERE sealed) THEN RAISE(ABORT, 'this ledger is sealed') "
        "WHEN EXISTS (SELECT 1 FROM stored_events WHERE originator_id = NEW.originator_id "
        f"AND originator_version = NEW.originator_version) THEN RAISE(ABORT, '{TAKEN}') "
        "WHEN NEW.originator_version > 1 AND NOT EXISTS (SELECT 1 FROM stored_events WHERE originator_id = "
        "NEW.originator_id AND originator_version = NEW.originator_version - 1) "
        "THEN RAISE(ABORT, 'a stream has no gaps') END; END"
    ),
    "ledger_identity_stays_sealed": (
        "CREATE TRIGGER ledger_identity_stays_sealed BEFORE UPDATE ON ledger_identity WHEN OLD.sealed "
        "AND NOT NEW.sealed BEGIN SELECT RAISE(ABORT, 'a sealed ledger stays sealed'); END"
    ),
}
_COMPANIONS: Final = ("-wal", "-shm", "-journal")


def columns_of(cursor: Any, table: str) -> tuple[tuple[str, str, int], ...]:
    """Name, type and place in the primary key of a table's columns; empty when there is no such table."""
    rows = cursor.execute(f"PRAGMA table_info({table})").fetchall()
    return tuple((row[1], row[2], row[5]) for row in rows)


def create_store(path: Path, identity: LedgerIdentity | None = None) -> bool:
    """Create a new, empty ledger file with ``identity`` or a fresh one. True when this call created it, else False.

    Missing folders are made for the owner only (0700), the file as well (0600). It is built under another name and
    appears complete: of two processes that create it at once, one does and the other finds it. Raises LedgerFailed.
    """
    if os.path.lexists(path):
        return False
    try:
        _make_folders(path.parent)
        return _create(path, identity or LedgerIdentity(str(uuid4()), 1, STORE_FORMAT, False))
    except (OSError, sqlite3.Error) as error:
        raise explain(error, path.name) from error


def _create(path: Path, identity: LedgerIdentity) -> bool:
    _refuse_companions(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _write_empty(draft, identity)
        _sync(draft)
        os.link(draft, path)  # never overwrites
    except FileExistsError:
        return False
    finally:
        _remove(draft)
    _sync(path.parent)
    return True


def _write_empty(draft: Path, identity: LedgerIdentity) -> None:
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN")
        for statement in (STORED_EVENTS, IDENTITY, *GUARDS.values()):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO ledger_identity VALUES (?, ?, ?, 0)", (identity.ledger_id, identity.epoch, identity.format)
        )
        connection.execute("COMMIT")


def _refuse_companions(path: Path) -> None:
    # SQLite would replay an earlier store's write-ahead log into the new file.
    left = [path.name + suffix for suffix in _COMPANIONS if os.path.lexists(f"{path}{suffix}")]
    if left and not os.path.lexists(path):
        raise LedgerFailed(
            ErrorCode.LEDGER_CORRUPT,
            f"The ledger {path.name} is missing, but its companion {left[0]} is still there.",
            safe="Nothing was created or changed.",
            next=f"Restore {path.name} next to it; only if that ledger is given up for good, move {left[0]} away.",
        )


def _make_folders(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(draft: Path) -> None:
    for suffix in ("", *_COMPANIONS):
        Path(f"{draft}{suffix}").unlink(missing_ok=True)
