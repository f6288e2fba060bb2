"""The SQLite store: one file, for one machine.

The life of an append: wait for the write lock (``BEGIN IMMEDIATE``, within a bound), read the identity record, insert
every row, commit with the log synced to disk (``synchronous=FULL``), and look whether the file is still the one that
was opened. The unique key (stream, version) decides races; the loser always learns that it lost. A failed commit whose
bytes may have reached the disk is a lost reply, which the ledger above resolves by reading back.

Opening never creates a file, and changes nothing before it knows that the store's format is not newer than this code.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes
from uuid import UUID

from eventsourcing.persistence import IntegrityError
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from ..domain.errors import ErrorCode, LedgerFailed
from ..domain.limits import LEDGER_WAIT_SECONDS
from .recorder import STORE_FORMAT, LedgerIdentity, RawRow, ReplyLost
from .sqlite_faults import TAKEN, explain, is_conflict, is_lost_reply, replaced, wrong_schema
from .sqlite_file import Connections, Place
from .sqlite_schema import GUARDS, IDENTITY_COLUMNS, STORED_EVENTS_COLUMNS, columns_of, create_store


class _Datastore(SQLiteDatastore):
    """Transactions over one file that stays the same file, with one sentence for every fault."""

    def __init__(self, place: Place, wait_seconds: float) -> None:
        super().__init__("")  # the library's own pool stays empty
        self.place = place
        self.identity: LedgerIdentity | None = None
        self.connections = Connections(place.path, wait_seconds)

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[Any]:
        """A cursor inside a transaction that commits at the end, or only reads.

        Raises IntegrityError for a key that is taken, ReplyLost, LedgerFailed.
        """
        self.place.check()
        try:
            connection = self.connections.take(write=commit)
        except (sqlite3.Error, TimeoutError) as error:
            raise explain(error, self.place.path.name) from error
        done = False
        try:
            cursor = connection.execute("BEGIN IMMEDIATE" if commit else "BEGIN")
            if commit and self.identity is not None:
                self._check_identity(cursor, self.identity)
            yield cursor
            self._end(connection, commit)
            done = True
        except sqlite3.Error as error:
            if is_conflict(error):
                raise IntegrityError(TAKEN) from error
            raise explain(error, self.place.path.name) from error
        finally:
            self.connections.give(connection, write=commit, reuse=done)
        if commit:
            self.place.check()

    def close(self) -> None:
        super().close()
        self.connections.close()

    def _end(self, connection: sqlite3.Connection, commit: bool) -> None:
        if not commit:
            connection.rollback()
            return
        try:
            connection.commit()
        except sqlite3.Error as error:
            if is_lost_reply(error):
                raise ReplyLost from explain(error, self.place.path.name)
            raise

    def _check_identity(self, cursor: Any, expected: LedgerIdentity) -> None:
        as_expected = (expected.ledger_id, expected.epoch, expected.format)
        if cursor.execute(_IS_IDENTITY, as_expected).fetchone():
            return
        rows = cursor.execute(SELECT_IDENTITY).fetchall()
        found = parse_identity(rows, self.place.path.name)
        raise (sealed if found.sealed else replaced)(self.place.path.name)


def sealed(name: str) -> LedgerFailed:
    """A sealed store was asked to take an append."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} is sealed: it was migrated, and its successor is the ledger now.",
        safe="Nothing was appended. A sealed ledger can still be read and verified.",
        next="Use the ledger that it was migrated to (--ledger or DPONE_LEDGER).",
    )


SELECT_IDENTITY = "SELECT * FROM ledger_identity LIMIT 2"
_IS_IDENTITY = "SELECT 1 FROM ledger_identity WHERE ledger_id = ? AND epoch = ? AND format = ? AND NOT sealed"


def parse_identity(rows: Sequence[Any], name: str) -> LedgerIdentity:
    """The identity record. Raises LedgerFailed: too new, absent, or not one row."""
    if len(rows) != 1:
        raise wrong_schema(name, "its identity record is not one row")
    row = dict(rows[0])
    newest = row.get("format")
    if type(newest) is int and newest > STORE_FORMAT:
        raise LedgerFailed(
            ErrorCode.LEDGER_TOO_NEW,
            f"The ledger {name} has format {newest}; this dpone reads formats up to {STORE_FORMAT}.",
            safe="Nothing was written to it.",
            next="Upgrade dpone on this machine, then repeat the same command.",
        )
    if tuple(row) != IDENTITY_COLUMNS or type(newest) is not int or type(row["epoch"]) is not int:
        raise wrong_schema(name, "its identity record is malformed")
    return LedgerIdentity(str(row["ledger_id"]), row["epoch"], newest, bool(row["sealed"]))


class SqliteRecorder(SQLiteApplicationRecorder):
    """The library's recorder on an existing ledger file. Made by :func:`open_store`."""

    contiguous = True

    def __init__(self, path: Path, wait_seconds: float = LEDGER_WAIT_SECONDS) -> None:
        self._store = _Datastore(Place.of(path), wait_seconds)
        super().__init__(self._store)

    @property
    def name(self) -> str:
        return self._store.place.path.name

    def identity(self) -> LedgerIdentity:
        """Read the identity record and check that this is a ledger of a format we know. Raises LedgerFailed."""
        with self._store.transaction(commit=False) as c:
            found = parse_identity(c.execute(SELECT_IDENTITY).fetchall(), self.name)
            if columns_of(c, "stored_events") != STORED_EVENTS_COLUMNS:
                raise wrong_schema(self.name, "its table of events has other columns")
        if self._store.identity is None:
            self._store.identity = found
        return found

    def seal(self) -> None:
        """Refuse appends from now on, by a trigger in the store itself."""
        with self._store.transaction(commit=True) as c:
            c.execute("UPDATE ledger_identity SET sealed = 1")

    def raise_epoch(self, epoch: int) -> None:
        """Count one more move or restore. A process that opened the ledger before appends nothing more."""
        with self._store.transaction(commit=True) as c:
            c.execute("UPDATE ledger_identity SET epoch = ? WHERE epoch < ?", (epoch, epoch))

    def stream_ids(self) -> Sequence[UUID]:
        """All streams in the order of their first events. Raises LedgerFailed when an id is not a UUID's 32 digits."""
        with self._store.transaction(commit=False) as c:
            c.execute("SELECT originator_id, MIN(rowid) FROM stored_events GROUP BY originator_id ORDER BY 2")
            rows = [(row[0], row[1]) for row in c.fetchall()]
        return [self._uuid(text, position) for text, position in rows]

    def raw_rows(self, after: int, limit: int) -> Sequence[RawRow]:
        with self._store.transaction(commit=False) as c:
            c.execute("SELECT rowid, * FROM stored_events WHERE rowid > ? ORDER BY rowid LIMIT ?", (after, limit))
            return [RawRow(*row) for row in c.fetchall()]

    def self_check(self) -> Sequence[str]:
        """SQLite's own integrity check, and whether the triggers that make the log append-only are there."""
        with self._store.transaction(commit=False) as c:
            c.execute("PRAGMA integrity_check(10)")
            faults = [row[0] for row in c.fetchall() if row[0] != "ok"]
            c.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            guards = dict(tuple(row) for row in c.fetchall())
        found = [f"the file {self.name} fails SQLite's integrity check"] if faults else []
        missing = sorted(name for name, sql in GUARDS.items() if guards.get(name) != sql)
        return found + [f"the guard {name} is missing or changed: events could be edited" for name in missing]

    def close(self) -> None:
        self._store.close()

    def _uuid(self, text: object, position: int) -> UUID:
        try:
            return UUID(hex=str(text))
        except ValueError as error:
            raise LedgerFailed(
                ErrorCode.EVIDENCE_INVALID,
                f"The event at position {position} of the ledger {self.name} belongs to no stream.",
                next="dpone audit verify",
            ) from error


def open_store(path: Path, *, wait_seconds: float = LEDGER_WAIT_SECONDS) -> SqliteRecorder:
    """Open an existing ledger file; never creates one.

    ``wait_seconds`` bounds every wait for another process's lock. Raises LedgerFailed: missing, not a ledger, damaged,
    too new, locked, unreadable.
    """
    recorder = SqliteRecorder(path, wait_seconds)
    try:
        recorder.identity()
    except BaseException:
        recorder.close()
        raise
    return recorder


def sqlite_url(path: Path) -> str:
    """The ledger URL of a file: ``sqlite:///absolute/path``, percent-encoded."""
    return f"sqlite://{quote(os.fsencode(path.absolute()))}"


def open_url(rest: str, create: bool, *, identity: LedgerIdentity | None = None) -> SqliteRecorder:
    """Open ``sqlite://`` + ``rest``, creating the file first when ``create`` allows it and there is none.

    ``rest`` is an absolute path, percent-encoded where needed; the four-slash spelling means the same. Raises
    LedgerFailed.
    """
    path = _path_of(rest)
    if create:
        create_store(path, identity)
    return open_store(path)


def _path_of(rest: str) -> Path:
    decoded = os.fsdecode(unquote_to_bytes(rest))
    path = Path("/" + decoded.lstrip("/"))
    problems = {
        "it has a host; an absolute path must follow sqlite://": not rest.startswith("/"),
        "it has a query or a fragment": "?" in rest or "#" in rest,
        "its path is empty or ends in a slash": decoded.endswith("/"),
        "its path has a control character": any(ord(character) < 32 for character in decoded),
        "an SQLite ledger is a file, never memory": ":memory:" in decoded,
    }
    for problem, found in problems.items():
        if found:
            raise LedgerFailed(
                ErrorCode.REQUEST_INVALID,
                f"The ledger's URL is wrong: {problem}.",
                next="Use --ledger sqlite:///absolute/path/ledger.sqlite",
            )
    return path
