"""SQLite from the side of SQL: a connection that can only read, what a table or query yields, and safe failures."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...domain.limits import LEDGER_WAIT_SECONDS
from ...domain.tables import Column
from .refusals import declaration, shown, unreadable

_ROWS: Final = 16_384
_CHUNK_ROWS: Final = 256
VIEW: Final = "temp.dpone_rows"
_LEADING = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(\w*)", re.DOTALL)
_ALLOWED: Final = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)


class NotText:
    """Stands for a TEXT value whose bytes are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What a select yields: names, the declared SQL types (empty for an expression), and whether NULL can occur."""

    names: tuple[str, ...]
    declared: tuple[str, ...]
    nullable: tuple[bool, ...]

    def proposed(self, file: str) -> tuple[Column, ...]:
        """Column types from the declared SQL types; every value is checked when it is read.

        Raises SourceFailed (DPONE_MANIFEST_INVALID) naming the columns without a declared type.
        """
        kinds = [_proposed(declared) for declared in self.declared]
        unknown = [shown(name) for name, kind in zip(self.names, kinds, strict=True) if kind is None]
        if unknown:
            raise declaration(
                f"{shown(file)} does not say the type of {', '.join(unknown[:10])}.", "Declare sink.columns."
            )
        return tuple(
            Column(name, f"Nullable({kind})" if nullable else str(kind))
            for name, kind, nullable in zip(self.names, kinds, self.nullable, strict=True)
        )


def _proposed(declared: str) -> str | None:
    """By SQLite's own rules of affinity (sqlite.org/datatype3.html, section 3.1), after the names that mean more."""
    name = declared.upper().partition("(")[0].strip()
    exact = {"BOOLEAN": "Bool", "BOOL": "Bool", "DATE": "Date32", "UUID": "UUID"}
    if name in exact:
        return exact[name]
    if name in ("DATETIME", "TIMESTAMP"):
        return "DateTime64(3, 'UTC')"
    if "INT" in name:
        return "Int64"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT", "BLOB")):
        return "String"
    if any(part in name for part in ("REAL", "FLOA", "DOUB", "NUM", "DECIMAL")):
        return "Float64"
    return None


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot create, write or attach. Raises SourceFailed."""
    with failing(path.name):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=LEDGER_WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # rows are fetched ahead in a thread; never from two at once
        )
    with closing(connection):
        connection.text_factory = _text
        with failing(path.name):
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
        yield connection


def _text(raw: bytes) -> Any:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return NotText()


@contextmanager
def failing(name: str) -> Iterator[None]:
    """SQLite's errors as ours: its message may quote a value, so only its kind is passed on."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", None) or type(error).__name__
        raise unreadable(
            f"SQLite cannot read {shown(name)} ({code}).",
            "Check that it is a complete SQLite database that no other process locks, then repeat the command.",
        ) from None


def columns_of(connection: sqlite3.Connection, statement: str, file: str) -> Iterator[list[list[Any]]]:
    """A result's columns, some thousand rows at a time. Text that is not UTF-8 comes as NotText, and nothing after it.

    Python's own decoding is several times as fast as a function of ours, and does not say which row it cannot decode:
    that is found by a second look at the same transaction.
    """
    rows = 0
    connection.text_factory = str
    try:
        for columns in _fetched(connection.execute(statement)):
            yield columns
            rows += len(columns[0])
        return
    except (sqlite3.OperationalError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", None) is not None:
            raise
    connection.text_factory = _text
    cursor = connection.execute(statement)
    while rows > 0 and (skipped := cursor.fetchmany(min(rows, _CHUNK_ROWS))):
        rows -= len(skipped)
    yield from _fetched(cursor)
    raise unreadable(f"{shown(file)} holds text that is not UTF-8.", "Correct it, then repeat the command.")


def _fetched(cursor: sqlite3.Cursor) -> Iterator[list[list[Any]]]:
    """Small chunks are turned into columns at once: thousands of tuples would keep the garbage collector busy."""
    columns: list[list[Any]] = [[] for _ in cursor.description]
    while chunk := cursor.fetchmany(_CHUNK_ROWS):
        for column, values in zip(columns, zip(*chunk, strict=True), strict=True):
            column.extend(values)
        if len(columns[0]) >= _ROWS:
            yield columns
            columns = [[] for _ in columns]
    if columns[0]:
        yield columns


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def describe_table(connection: sqlite3.Connection, table: str, file: str) -> Columns:
    """The columns of a table or view. Raises SourceFailed when it is not there."""
    with failing(file):
        rows = connection.execute(
            'SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?, ?) WHERE hidden <> 1 ORDER BY cid',
            (table, "main"),
        ).fetchall()
    if not rows:
        raise unreadable(f"{shown(file)} has no table {shown(table)}.", "Check source.table.")
    keys = sum(1 for row in rows if row[3])
    nullable = [not row[2] and not (keys == 1 and row[3] and row[1].upper() == "INTEGER") for row in rows]
    return Columns(tuple(row[0] for row in rows), tuple(row[1] for row in rows), tuple(nullable))


def describe_query(connection: sqlite3.Connection, query: str, file: str) -> Columns:
    """The columns of one SELECT, which stands as the view ``VIEW`` afterwards. Nothing of it runs.

    Raises SourceFailed (DPONE_MANIFEST_INVALID): several statements, not a SELECT, or one that SQLite does not accept.
    """
    leading = _LEADING.match(query)
    if leading is None or leading[1].upper() not in ("SELECT", "WITH"):
        raise declaration("source.query must be one SELECT (or WITH … SELECT).", "Correct source.query.")
    try:
        connection.execute(f"CREATE TEMP VIEW dpone_rows AS {query}")
        rows = connection.execute("SELECT name, type FROM pragma_table_xinfo('dpone_rows', 'temp')").fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        raise declaration(
            f"SQLite does not accept source.query as one SELECT over {shown(file)}.",
            "Try it in the sqlite3 shell, then correct source.query.",
        ) from None
    return Columns(tuple(row[0] for row in rows), tuple(row[1] for row in rows), (True,) * len(rows))


@contextmanager
def reading_only(connection: sqlite3.Connection, file: str) -> Iterator[None]:
    """One read transaction in which SQLite itself refuses everything but reading."""
    with failing(file):
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()  # the snapshot begins with a read
    connection.set_authorizer(_authorise)
    try:
        yield
    finally:
        connection.set_authorizer(None)


def _authorise(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or first or "").lower() == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
