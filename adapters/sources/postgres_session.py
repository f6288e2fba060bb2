"""Two sides of a PostgreSQL source: what a table or query yields (by ``psycopg``), and its rows (by ADBC).

ADBC's driver sends ``COPY (…) TO STDOUT (FORMAT binary)`` and builds Arrow columns from it outside of Python. It says
nothing about precision, scale and NOT NULL, so those are asked for beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...domain.errors import DponeError
from ..connections.connection import Connection
from ..connections.postgres import copying, opened
from .refusals import declaration, shown, unreadable

if TYPE_CHECKING:
    import psycopg

BATCH_BYTES: Final = 8 * 1024 * 1024
_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_PINNED: Final = (
    "SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, MDY', true), "
    "set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true)"
)
_NOT_THERE: Final = ("42P01", "3F000")
_TROUBLE: Final = ("08", "40", "42501", "53", "54", "55", "57", "58", "XX")
"""SQLSTATE classes and codes that say nothing about the query's text."""

_LOST: Final = re.compile(r"server closed the connection|connection to server|no connection|FATAL:|timed out|SSL|EOF")


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column as the server describes it; ``type_name`` is a domain's base type."""

    name: str
    type_name: str
    is_enum: bool
    nullable: bool


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def columns_of(connection: Connection, rows_of: str, name: str, is_query: bool) -> list[ServerColumn]:
    """What ``SELECT * FROM rows_of`` yields; no row is read. Raises DponeError."""
    import psycopg

    with opened(connection) as session:
        try:
            session.execute(f"BEGIN; {_SNAPSHOT}")
            session.execute(_PINNED)
            if session.execute("SHOW server_encoding").fetchone() == ("SQL_ASCII",):
                raise declaration(
                    f"The database of {shown(name)} has the encoding SQL_ASCII, whose text has no defined meaning.",
                    "Read it from a database with an encoding.",
                )
            # Binary results take the extended protocol, which accepts one statement only: no text can end the SELECT
            # and go on with another command.
            result = session.execute(f"SELECT * FROM {rows_of} LIMIT 0".encode(), binary=True).pgresult
            return _described(session, result, is_query)
        except psycopg.Error as error:
            raise explained(error, connection, name, is_query) from None


def _described(session: psycopg.Connection[Any], result: Any, is_query: bool) -> list[ServerColumn]:
    places = range(result.nfields)
    kinds = session.execute(
        "SELECT CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod) ELSE format_type(f.type, f.mod) "
        "END, coalesce(b.typtype, t.typtype) = 'e', coalesce(a.attnotnull, false) "
        "FROM unnest(%s::oid[], %s::int4[], %s::oid[], %s::int4[]) WITH ORDINALITY AS f(type, mod, rel, col, place) "
        "JOIN pg_catalog.pg_type t ON t.oid = f.type LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype "
        "LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = f.rel AND a.attnum = f.col ORDER BY f.place",
        (
            [result.ftype(place) for place in places],
            [result.fmod(place) for place in places],
            [result.ftable(place) for place in places],
            [result.ftablecol(place) for place in places],
        ),
    ).fetchall()
    # An outer join yields NULL for a column that is NOT NULL in its table: only a table itself is believed.
    return [
        ServerColumn(result.fname(place).decode(), kind, is_enum, is_query or not not_null)
        for place, (kind, is_enum, not_null) in zip(places, kinds, strict=True)
    ]


@dataclass(slots=True)
class RowsSession:
    """A connection in one REPEATABLE READ, READ ONLY transaction. Used by one thread, for one read."""

    session: Any
    cursor: Any
    connection: Connection
    name: str

    @classmethod
    @contextmanager
    def open(cls, connection: Connection, name: str) -> Iterator[RowsSession]:
        """Connect and begin. Raises DponeError."""
        with copying(connection) as session:
            cursor = session.cursor(adbc_stmt_kwargs={"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
            rows = cls(session, cursor, connection, name)
            try:
                with rows._failing():
                    cursor.execute(_SNAPSHOT)
                    cursor.execute(_PINNED)
                    cursor.fetchall()
                yield rows
            finally:
                with suppress(Exception):  # the connection is thrown away either way
                    cursor.close()

    def snapshot(self) -> str:
        """The transactions that this read sees: ``xmin:xmax:list``."""
        with self._failing():
            self.cursor.execute("SELECT txid_current_snapshot()::text")
            return str(self.cursor.fetchone()[0])

    def stream(self, statement: str, expected: Sequence[Any]) -> Iterator[Any]:
        """Arrow batches. ``expected`` are the types that the columns must arrive in."""
        with self._failing():
            self.cursor.execute(statement)
            reader = self.cursor.fetch_record_batch()
            if list(reader.schema.types) != list(expected):
                raise unreadable(
                    f"{shown(self.name)} no longer has the column types that it had a moment ago.",
                    "Repeat the same command.",
                )
            yield from reader

    def interrupt(self) -> None:
        """Make the server end what another thread waits for."""
        with suppress(Exception):
            self.cursor.adbc_cancel()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (DponeError, GeneratorExit):
            raise
        except Exception as error:
            # An error in the middle of COPY carries no code; libpq's own words (which are looked at, never passed on)
            # tell a lost connection from a query that the server gave up.
            if getattr(error, "sqlstate", None) is None and not _LOST.search(str(error)):
                raise unreadable(
                    f"PostgreSQL failed while {shown(self.name)} was read.",
                    "Look at the server's log (a query may only read), then repeat the command.",
                ) from None
            raise explained(error, self.connection, self.name, False) from None


def explained(error: Exception, connection: Connection, name: str, is_query: bool) -> DponeError:
    """PostgreSQL's messages may quote values: only its code is passed on."""
    state = str(getattr(error, "sqlstate", None) or "")
    if is_query and state and not state.startswith(_TROUBLE):
        return declaration(
            f"PostgreSQL does not accept source.query as one SELECT ({state}).",
            "Try it in psql, then correct source.query.",
        )
    if state in _NOT_THERE:
        return unreadable(f"The server has no table {shown(name)}.", "Check source.table and the database.")
    if state == "42501":
        return unreadable(
            f"The user of the connection {connection.reference!r} may not read {shown(name)}.",
            "GRANT SELECT on the table and USAGE on its schema.",
        )
    if state and state[:2] not in ("08", "57"):
        return unreadable(
            f"PostgreSQL failed while {shown(name)} was read ({state}).",
            "Look at the server's log, then repeat the command.",
        )
    return unreadable(
        f"The connection {connection.reference!r} was lost while {shown(name)} was read.",
        "Check that the server runs, then repeat the same command.",
    )
