"""The PostgreSQL store: one schema of a database, shared by machines.

The life of an append: one call of the store's own function, which is one transaction. It takes the table's lock (within
a bound), checks that this is still the ledger and the epoch that was opened, and inserts every row; triggers number
them without a gap, refuse a gap in a stream and everything in a sealed ledger; the unique key (stream, version) decides
races; the commit is on disk before the server answers (``synchronous_commit=on``). When no answer comes, the reply is
lost, and the ledger above finds out by reading back.

Reading and following are the event sourcing library's. Opening never creates anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder
from psycopg.sql import SQL, Composed, Identifier

from ..domain.limits import LEDGER_WAIT_SECONDS
from .postgres_faults import missing, too_new, wrong_schema
from .postgres_schema import (
    EVENTS_COLUMNS,
    FUNCTIONS,
    IDENTITY_COLUMNS,
    TRIGGERS,
    body_of,
    columns_of,
    create_tables,
)
from .postgres_session import Datastore
from .postgres_url import Place, parse
from .recorder import STORE_FORMAT, LedgerIdentity, RawRow

_APPEND: Final = (
    "SELECT * FROM {schema}.ledger_append(%s, %s, %s, %s::uuid[], %s::bigint[], %s::text[], %s::bytea[]) AS position"
)
_IDENTITY: Final = "SELECT * FROM {schema}.ledger_identity LIMIT 2"
_SEAL: Final = "UPDATE {schema}.ledger_identity SET sealed = true"
_RAISE: Final = "UPDATE {schema}.ledger_identity SET epoch = %s WHERE epoch < %s"
_LOCK: Final = "LOCK TABLE {schema}.stored_events IN EXCLUSIVE MODE"
_STREAMS: Final = "SELECT originator_id FROM {schema}.stored_events GROUP BY 1 ORDER BY min(notification_id)"
_RAW: Final = (
    "SELECT notification_id, replace(originator_id::text, '-', '') AS originator_id, originator_version, topic, state "
    "FROM {schema}.stored_events WHERE notification_id > %s ORDER BY notification_id LIMIT %s"
)
_FUNCTIONS: Final = (
    "SELECT proname, prosrc FROM pg_catalog.pg_proc WHERE pronamespace = (SELECT oid FROM pg_catalog.pg_namespace "
    "WHERE nspname = %s)"
)
_TRIGGERS: Final = (
    "SELECT tgname, tgenabled FROM pg_catalog.pg_trigger WHERE NOT tgisinternal "
    "AND tgrelid IN (to_regclass(%s), to_regclass(%s))"
)


class PostgresRecorder(PostgresApplicationRecorder):
    """The library's recorder on an existing ledger. Made by :func:`open_store`."""

    contiguous = True

    def __init__(self, place: Place, wait_seconds: float = LEDGER_WAIT_SECONDS) -> None:
        self._store = Datastore(place, wait_seconds)
        self._schema = place.schema
        self._identity: LedgerIdentity | None = None
        super().__init__(self._store)

    @property
    def name(self) -> str:
        return self._store.name

    def identity(self) -> LedgerIdentity:
        """Read the identity record and check that this is a ledger of a format we know. Raises LedgerFailed."""
        with self._store.get_connection() as connection:
            if not columns_of(connection, self._schema, "ledger_identity"):
                raise missing(self.name)
            found = self._parse(connection.execute(self._sql(_IDENTITY)).fetchall())
            if columns_of(connection, self._schema, "stored_events") != EVENTS_COLUMNS:
                raise wrong_schema(self.name, "its table of events has other columns")
        if self._identity is None:
            self._identity = found
        return found

    def seal(self) -> None:
        """Refuse appends from now on, by a trigger in the store itself. Needs the owner's privileges."""
        self._change(self._sql(_SEAL), ())

    def raise_epoch(self, epoch: int) -> None:
        """Count one more move or restore. A process that opened the ledger before appends nothing more."""
        self._change(self._sql(_RAISE), (epoch, epoch))

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Store all or nothing; returns positions. Raises IntegrityError, ReplyLost, LedgerFailed."""
        rows = list(stored_events)
        if not rows:
            return []
        known = self._identity or self.identity()
        columns = (
            [row.originator_id for row in rows],
            [row.originator_version for row in rows],
            [row.topic for row in rows],
            [row.state for row in rows],
        )
        with self._store.writing() as connection:
            found = connection.execute(
                self._sql(_APPEND), (known.ledger_id, known.epoch, known.format, *columns), prepare=True
            ).fetchall()
        return [row["position"] for row in found]

    def stream_ids(self) -> Sequence[UUID]:
        """All streams in the order of their first events."""
        with self._store.get_connection() as connection:
            return [row["originator_id"] for row in connection.execute(self._sql(_STREAMS)).fetchall()]

    def raw_rows(self, after: int, limit: int) -> Sequence[RawRow]:
        with self._store.get_connection() as connection:
            rows = connection.execute(self._sql(_RAW), (after, limit)).fetchall()
        return [RawRow(*row.values()) for row in rows]

    def self_check(self) -> Sequence[str]:
        """Whether the functions and triggers that make the log append-only are there and unchanged."""
        tables = (f"{self._schema}.stored_events", f"{self._schema}.ledger_identity")
        with self._store.get_connection() as connection:
            rows = connection.execute(_FUNCTIONS, (self._schema,)).fetchall()
            bodies = {row["proname"]: row["prosrc"] for row in rows}
            rows = connection.execute(_TRIGGERS, tables).fetchall()
            enabled = {row["tgname"] for row in rows if row["tgenabled"] in ("O", "A")}
        functions = [name for name in FUNCTIONS if bodies.get(name) != body_of(name, self._schema)]
        missing_ones = sorted({*functions, *(TRIGGERS.keys() - enabled)})
        return [f"the guard {name} is missing or changed: events could be edited" for name in missing_ones]

    def close(self) -> None:
        self._store.close()

    def _change(self, statement: Composed, values: Sequence[object]) -> None:
        with self._store.writing() as connection, connection.transaction():
            connection.execute(self._sql(_LOCK))  # no append is between its check and its commit
            connection.execute(statement, values)

    def _parse(self, rows: Sequence[dict[str, Any]]) -> LedgerIdentity:
        if len(rows) != 1:
            raise wrong_schema(self.name, "its identity record is not one row")
        row = rows[0]
        newest = row.get("format")
        if type(newest) is int and newest > STORE_FORMAT:
            raise too_new(self.name, newest, STORE_FORMAT)
        if tuple(row) != tuple(IDENTITY_COLUMNS) or type(newest) is not int:
            raise wrong_schema(self.name, "its identity record is malformed")
        return LedgerIdentity(row["ledger_id"], row["epoch"], newest, row["sealed"])

    def _sql(self, text: str) -> Composed:
        return SQL(text).format(schema=Identifier(self._schema))  # a text of this module


def open_store(place: Place, *, wait_seconds: float = LEDGER_WAIT_SECONDS) -> PostgresRecorder:
    """Open an existing ledger; never creates one.

    ``wait_seconds`` bounds every wait for a connection, a lock or an answer. Raises LedgerFailed: unreachable, missing,
    not a ledger, too new.
    """
    recorder = PostgresRecorder(place, wait_seconds)
    try:
        recorder.identity()
    except BaseException:
        recorder.close()
        raise
    return recorder


def create_store(place: Place, identity: LedgerIdentity | None = None) -> bool:
    """Create a new, empty ledger, and its schema where there is none; never a database.

    True when this call created it, False when it was there. Raises LedgerFailed.
    """
    store = Datastore(place, LEDGER_WAIT_SECONDS)
    try:
        with store.get_connection() as connection, connection.transaction():
            return create_tables(connection, place.schema, place.name, identity)
    finally:
        store.close()


def open_url(rest: str, create: bool, *, identity: LedgerIdentity | None = None) -> PostgresRecorder:
    """Open ``postgresql://`` + ``rest``, creating the ledger first when ``create`` allows it. Raises LedgerFailed."""
    place = parse(rest)
    if create:
        create_store(place, identity)
    return open_store(place)
