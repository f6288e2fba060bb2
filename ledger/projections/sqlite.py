"""A projection in an SQLite file, which may be deleted at any time: everything in it is made again from the ledger."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from ...domain.limits import LEDGER_WAIT_SECONDS
from .faults import ProjectionFailed, damaged, foreign, full, locked, read_only, refused, unreachable
from .folding import RowChange
from .statements import first_key, insert, last_rows, page
from .tables import POSITION, TABLES, Kind, ProjectedTable, Row
from .target import Mark

_PAGE_ROWS: Final = 1_000
_TYPES: Final = {Kind.TEXT: "TEXT", Kind.INTEGER: "INTEGER", Kind.BOOLEAN: "BOOLEAN"}
_MARK: Final = 'SELECT "format", "ledger_id", "epoch", "position", "last_event" FROM "projection_position"'
_MOVE: Final = (
    'UPDATE "projection_position" SET "position" = ?, "last_event" = ? '
    'WHERE "format" = ? AND "ledger_id" = ? AND "epoch" = ? AND "position" = ? AND "last_event" = ?'
)


class SqliteTarget:
    """Implements :class:`~dpone.ledger.projections.target.ProjectionTarget`. Opens the file with every use anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return self._path.name

    def mark(self) -> Mark | None:
        with self._reading() as connection:
            return None if connection is None else _mark(connection, self.name)

    def restart(self, mark: Mark) -> None:
        self._make_file()
        with self._writing() as connection:
            _check_ours(connection, self.name)
            for table in (*TABLES, POSITION):
                connection.execute(f'DROP TABLE IF EXISTS "{table.name}"')
                connection.execute(_create(table))
            connection.execute(insert(POSITION, "?"), _row(mark))

    def advance(self, before: Mark, after: Mark, changes: Sequence[RowChange]) -> bool:
        with self._writing() as connection:
            moved = connection.execute(_MOVE, (after.position, after.last_event, *_row(before))).rowcount == 1
            if moved:
                for table, rows in last_rows(changes):
                    connection.executemany(insert(table, "?"), rows)
            return moved

    @contextmanager
    def snapshot(self) -> Iterator[_Kept]:
        with self._reading() as connection:
            yield _Kept(connection, None if connection is None else _mark(connection, self.name), self.name)

    def close(self) -> None:
        """Nothing is kept open between uses."""

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """One transaction to read in; None where there is no file, or an empty one."""
        if not self._path.exists() or self._path.stat().st_size == 0:
            yield None
            return
        with self._opened() as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            uri = f"file:{quote(os.fsencode(self._path))}?mode=rw"
            connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=LEDGER_WAIT_SECONDS)
            yield connection
        except sqlite3.Error as error:
            raise _explained(error, self.name) from None
        finally:
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.rollback()
                connection.close()

    def _make_file(self) -> None:
        """For the owner only, as the ledger's own. Its folder is never made: it may be a drive that is not there."""
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        except PermissionError:
            raise read_only(self.name) from None
        except OSError:
            raise unreachable(self.name) from None
        if self._path.stat().st_size == 0:  # whatever else stands there is not ours to change
            with self._opened() as connection:
                connection.execute("PRAGMA journal_mode=WAL")  # who reads keeps nobody from writing


class _Kept:
    """Implements :class:`~dpone.ledger.projections.target.KeptRows`."""

    def __init__(self, connection: sqlite3.Connection | None, mark: Mark | None, name: str) -> None:
        self._connection = connection
        self._name = name
        self.mark = mark

    def rows(self, table: ProjectedTable) -> Iterator[Row]:
        if self._connection is None:
            return
        after = first_key(table)
        flags = [column.kind is Kind.BOOLEAN for column in table.columns]
        while found := self._connection.execute(page(table, "?"), (after, _PAGE_ROWS)).fetchall():
            for row in found:
                yield tuple(_flag(value) if flag else value for value, flag in zip(row, flags, strict=True))
            after = found[-1][0]


def _flag(value: object) -> bool | None:
    return None if value is None else bool(value)


def _mark(connection: sqlite3.Connection, name: str) -> Mark | None:
    if POSITION.name not in _tables(connection):
        return None
    rows = connection.execute(_MARK).fetchall()
    if len(rows) != 1:
        raise damaged(name)
    return Mark(*rows[0])


def _check_ours(connection: sqlite3.Connection, name: str) -> None:
    """A file with anything else than our own tables in it is not ours."""
    others = sorted(_tables(connection) - {table.name for table in (*TABLES, POSITION)})
    if others:
        raise foreign(name, "it holds other tables")
    known = _tables(connection)
    if known and POSITION.name not in known:
        raise foreign(name, "it holds tables that no projection made")


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    return {row[0] for row in rows if not row[0].startswith("sqlite_")}


def _create(table: ProjectedTable) -> str:
    columns = [
        f'"{column.name}" {_TYPES[column.kind]}'
        + (" NOT NULL" if column.required else "")
        + (" PRIMARY KEY" if column is table.key else "")
        for column in table.columns
    ]
    return f'CREATE TABLE "{table.name}" ({", ".join(columns)})'


def _row(mark: Mark) -> Row:
    return (mark.format, mark.ledger_id, mark.epoch, mark.position, mark.last_event)


def _explained(error: sqlite3.Error, name: str) -> ProjectionFailed:
    code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return locked(name)
        case sqlite3.SQLITE_FULL:
            return full(name)
        case sqlite3.SQLITE_READONLY:
            return read_only(name)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH | sqlite3.SQLITE_IOERR:
            return unreachable(name)
        case sqlite3.SQLITE_NOTADB:
            return foreign(name, "it is not an SQLite file")
        case _:
            return damaged(name)


def open_url(rest: str) -> SqliteTarget:
    """``sqlite://`` + ``rest``, an absolute path, percent-encoded where needed. Raises ProjectionFailed."""
    decoded = os.fsdecode(unquote_to_bytes(rest))
    path = Path("/" + decoded.lstrip("/"))
    problems = {
        "it has a host; an absolute path must follow sqlite://": not rest.startswith("/"),
        "it has a query or a fragment": "?" in rest or "#" in rest,
        "its path is empty or ends in a slash": decoded.endswith("/") or not decoded,
        "its path has a control character": any(ord(character) < 32 for character in decoded),
        "a projection is a file, never memory": ":memory:" in decoded,
        "its path is a folder's": path.is_dir(),
    }
    for problem, found in problems.items():
        if found:
            raise refused(problem)
    return SqliteTarget(path)
