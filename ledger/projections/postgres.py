"""A projection in a schema of a PostgreSQL database.

Whoever writes takes the projection's advisory lock first, so that followers and a rebuild take turns. Whoever reads the
whole takes it shared until its transaction holds the tables, which are then those of one moment.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import psycopg
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Composed, Identifier

from ...domain.errors import LedgerFailed
from ...domain.limits import LEDGER_WAIT_SECONDS
from ..postgres_session import BoundedConnection
from ..postgres_url import Place, parse
from . import faults
from .folding import RowChange
from .statements import first_key, insert, last_rows, page
from .tables import POSITION, TABLES, Kind, ProjectedTable, Row
from .target import Mark

DEFAULT_SCHEMA: Final = "dpone_projection"
_PAGE_ROWS: Final = 1_000
_TYPES: Final = {Kind.TEXT: "text", Kind.INTEGER: "bigint", Kind.BOOLEAN: "boolean"}
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK_SHARED: Final = "SELECT pg_advisory_lock_shared(hashtextextended(%s, 0))"
_UNLOCK_SHARED: Final = "SELECT pg_advisory_unlock_shared(hashtextextended(%s, 0))"
_RELATIONS: Final = (
    "SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace = "
    "(SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = %s)"
)
_HAS_SCHEMA: Final = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
_MARK: Final = 'SELECT "format", "ledger_id", "epoch", "position", "last_event" FROM {schema}."projection_position"'
_MOVE: Final = (
    'UPDATE {schema}."projection_position" SET "position" = %s, "last_event" = %s '
    'WHERE "format" = %s AND "ledger_id" = %s AND "epoch" = %s AND "position" = %s AND "last_event" = %s'
)
_TRANSIENT: Final = ("55P03", "57014", "40001", "40P01", "25P03", "25P04")
_ENDED: Final = ("08", "57P01", "57P02", "57P03", "57P05")


class PostgresTarget:
    """Implements :class:`~dpone.ledger.projections.target.ProjectionTarget`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock_name = f"dpone projection {place.schema}"
        self._open: BoundedConnection | None = None

    @property
    def name(self) -> str:
        return self._place.name

    def mark(self) -> Mark | None:
        with self._connection() as connection, connection.transaction():
            return self._mark(connection)

    def restart(self, mark: Mark) -> None:
        with self._writing() as connection:
            self._check_ours(connection)
            if not connection.execute(_HAS_SCHEMA, (self._place.schema,)).fetchone():
                connection.execute(self._sql("CREATE SCHEMA {schema}"))
            for table in (*TABLES, POSITION):
                connection.execute(self._sql(f'DROP TABLE IF EXISTS {{schema}}."{table.name}"'))
                connection.execute(self._sql(_create(table)))
            connection.execute(self._sql(insert(POSITION, "%s", "{schema}.")), _row(mark))

    def advance(self, before: Mark, after: Mark, changes: Sequence[RowChange]) -> bool:
        with self._writing() as connection:
            values = (after.position, after.last_event, *_row(before))
            moved = connection.execute(self._sql(_MOVE), values).rowcount == 1
            if moved:
                for table, rows in last_rows(changes):
                    with connection.cursor() as cursor:
                        cursor.executemany(self._sql(insert(table, "%s", "{schema}.")), rows)
            return moved

    @contextmanager
    def snapshot(self) -> Iterator[_Kept]:
        with self._connection() as connection:
            connection.execute(_LOCK_SHARED, (self._lock_name,))
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                mark = self._mark(connection)
                if mark is not None:
                    names = ", ".join(f'{{schema}}."{table.name}"' for table in TABLES)
                    connection.execute(self._sql(f"LOCK TABLE {names} IN ACCESS SHARE MODE"))
                connection.execute(_UNLOCK_SHARED, (self._lock_name,))
                yield _Kept(connection, mark, self._place.schema)

    def close(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    @contextmanager
    def _writing(self) -> Iterator[BoundedConnection]:
        with self._connection() as connection, connection.transaction():
            connection.execute(_LOCK, (self._lock_name,))
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[BoundedConnection]:
        """The one connection, made anew after any failure. Raises ProjectionFailed."""
        done = False
        try:
            if self._open is None or self._open.closed:
                self._open = _connected(self._place)
            yield self._open
            done = True
        except psycopg.Error as error:
            raise _explained(error, self.name) from None
        finally:
            if not done:
                self.close()

    def _mark(self, connection: BoundedConnection) -> Mark | None:
        if POSITION.name not in self._relations(connection):
            return None
        rows = cast("list[Any]", connection.execute(self._sql(_MARK)).fetchall())
        if len(rows) != 1:
            raise faults.damaged(self.name)
        return Mark(*rows[0])

    def _check_ours(self, connection: BoundedConnection) -> None:
        """A schema with anything else than our own tables in it is not ours."""
        found = self._relations(connection)
        if found - {table.name for table in (*TABLES, POSITION)}:
            raise faults.foreign(self.name, "its schema holds other tables")
        if found and POSITION.name not in found:
            raise faults.foreign(self.name, "its schema holds tables that no projection made")

    def _relations(self, connection: BoundedConnection) -> set[str]:
        rows = cast("list[Any]", connection.execute(_RELATIONS, (self._place.schema,)).fetchall())
        return {row[0] for row in rows}

    def _sql(self, text: str) -> Composed:
        return SQL(cast("Any", text)).format(schema=Identifier(self._place.schema))  # names are this package's own


class _Kept:
    """Implements :class:`~dpone.ledger.projections.target.KeptRows`."""

    def __init__(self, connection: BoundedConnection, mark: Mark | None, schema: str) -> None:
        self._connection = connection
        self._schema = Identifier(schema)
        self.mark = mark

    def rows(self, table: ProjectedTable) -> Iterator[Row]:
        if self.mark is None:
            return
        after: Any = first_key(table)
        select = SQL(cast("Any", page(table, "%s", "{schema}."))).format(schema=self._schema)
        while found := cast("list[Any]", self._connection.execute(select, (after, _PAGE_ROWS)).fetchall()):
            yield from found
            after = found[-1][0]


def _create(table: ProjectedTable) -> str:
    """Texts sort by code point, as SQLite's do, whatever the database's own order."""
    columns = [
        f'"{column.name}" {_TYPES[column.kind]}'
        + (' COLLATE "C"' if column.kind is Kind.TEXT else "")
        + (" NOT NULL" if column.required else "")
        + (" PRIMARY KEY" if column is table.key else "")
        for column in table.columns
    ]
    return f'CREATE TABLE {{schema}}."{table.name}" ({", ".join(columns)})'


def _row(mark: Mark) -> Row:
    return (mark.format, mark.ledger_id, mark.epoch, mark.position, mark.last_event)


def _connected(place: Place) -> BoundedConnection:
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)  # its messages name host, port and user
    milliseconds = round(LEDGER_WAIT_SECONDS * 1000)
    settings = {
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": 60_000,
        "search_path": "pg_catalog",
    }
    try:
        connection = BoundedConnection.connect(
            **{
                **place.parameters,
                "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
                "application_name": "dpone projection",
                "client_encoding": "UTF8",
                "connect_timeout": round(LEDGER_WAIT_SECONDS / 2),
            },
            autocommit=True,
            row_factory=cast("Any", tuple_row),
        )
    except psycopg.Error as error:
        raise _explained_connecting(error, place.name) from None
    connection.reply_seconds = LEDGER_WAIT_SECONDS + 2
    return connection


def _explained(error: psycopg.Error, name: str) -> faults.ProjectionFailed:
    state = error.sqlstate
    if state is None:
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return faults.unreachable(name) if lost else faults.damaged(name)
    if state.startswith(_ENDED):
        return faults.unreachable(name)
    if state in _TRANSIENT:
        return faults.locked(name)
    if state in ("42501", "28000", "28P01"):
        return faults.denied(name)
    if state.startswith("53") or state == "58030":
        return faults.full(name)
    if state in ("25006", "57P04"):
        return faults.read_only(name)
    return faults.damaged(name)


def _explained_connecting(error: psycopg.Error, name: str) -> faults.ProjectionFailed:
    """libpq tells why only in words, which name host, port and user: they are looked at, never passed on."""
    said = str(error).lower()
    if any(word in said for word in ("password", "pg_hba", 'role "', "authentication")):
        return faults.denied(name)
    if "database" in said and "does not exist" in said:
        return faults.absent_database(name)
    return faults.unreachable(name)


def open_url(rest: str) -> PostgresTarget:
    """``postgresql://`` + ``rest``; the schema is ``dpone_projection`` unless the URL says another.

    Connects with the first use. Raises ProjectionFailed.
    """
    try:
        return PostgresTarget(parse(rest, DEFAULT_SCHEMA))
    except LedgerFailed as error:
        raise faults.refused(error.what.partition(": ")[2].rstrip(".")) from None
