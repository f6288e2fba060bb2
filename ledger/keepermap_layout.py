"""The KeeperMap store's tables, keys and statements. Every statement is ASCII; names and values are checked or hex.

One table holds both the events and their order, because one insert into one table is one Keeper transaction:

=========================  =============================================================================
key                        what
=========================  =============================================================================
``stream/<id>/<version>``  an event: the library's columns, and its position (``notification_id``)
``log/<position>``         which event stands at this position; or, with topic ``sealed``, the end for ever
=========================  =============================================================================

A second table holds the identity record: ``identity/<number>``, of which the highest counts. Rows are only ever added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from ..domain.errors import ErrorCode, LedgerFailed
from .recorder import LedgerIdentity

SEALED: Final = "sealed"
ENTRY_BYTES_MAX: Final = 900 * 1024  # Keeper refuses requests of 1 MiB by closing the connection
ROW_BYTES_EXTRA: Final = 512  # keys, ids and the request's own frame, generously
_WAITING: Final = "insert_keeper_max_retries = 1, keeper_max_retries = 1"
_STRICT: Final = f"keeper_map_strict_mode = 1, {_WAITING}, max_insert_threads = 1, max_execution_time = 4"
_EVENT_COLUMNS: Final = (
    "key String, originator_id String, originator_version Int64, topic String, state String, "
    "notification_id Int64, insert_id String"
)
_IDENTITY_COLUMNS: Final = "key String, ledger_id String, epoch Int64, format Int64"
_REFERENCE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def parse(rest: str) -> tuple[str, str]:
    """Reference and database of ``keepermap://`` + ``rest``. Raises LedgerFailed, quoting nothing."""
    reference, _, database = rest.partition("/")
    if not _REFERENCE.fullmatch(reference) or not _DATABASE.fullmatch(database):
        raise LedgerFailed(
            ErrorCode.REQUEST_INVALID,
            "The ledger's URL is wrong: it is not a connection's reference and the name of a database.",
            next="Use --ledger keepermap://connection_ref/database; host and password belong to the connection.",
        )
    return reference, database


def creating(database: str) -> tuple[str, str, str]:
    """The statements that make the database and both tables, or join them where another replica made them."""
    root = f"/dpone_ledger/{database}"
    return (
        f"CREATE DATABASE IF NOT EXISTS {database}",
        f"CREATE TABLE IF NOT EXISTS {database}.stored_events ({_EVENT_COLUMNS}) "
        f"ENGINE = KeeperMap('{root}/stored_events') PRIMARY KEY key",
        f"CREATE TABLE IF NOT EXISTS {database}.ledger_identity ({_IDENTITY_COLUMNS}) "
        f"ENGINE = KeeperMap('{root}/ledger_identity') PRIMARY KEY key",
    )


def stream_key(stream: UUID | str, version: int) -> str:
    """The key of an event."""
    return f"stream/{UUID(str(stream)).hex}/{version:012d}"


def log_key(position: int) -> str:
    """The key of a place in the ledger's order."""
    return f"log/{position:012d}"


def identity_key(number: int) -> str:
    """The key of the n-th identity record."""
    return f"identity/{number:06d}"


def insert_events(database: str, rows: Sequence[StoredEvent], first: int, token: str) -> str:
    """One strict insert of all rows and their places, from position ``first`` on."""
    values: list[str] = []
    for position, row in enumerate(rows, start=first):
        stream = UUID(str(row.originator_id)).hex
        values.append(
            _values(
                stream_key(row.originator_id, row.originator_version),
                stream,
                row.originator_version,
                row.topic.encode(),
                row.state,
                position,
                token,
            )
        )
        values.append(_values(log_key(position), stream, row.originator_version, b"", b"", position, token))
    return _insert(f"{database}.stored_events", _EVENT_COLUMNS, values)


def insert_seal(database: str, position: int, token: str) -> str:
    """A strict insert that takes the next position for ever."""
    values = _values(log_key(position), "", 0, SEALED.encode(), b"", position, token)
    return _insert(f"{database}.stored_events", _EVENT_COLUMNS, [values])


def insert_identity(database: str, number: int, record: LedgerIdentity) -> str:
    """A strict insert of the n-th identity record."""
    values = f"('{identity_key(number)}', '{UUID(record.ledger_id)}', {record.epoch:d}, {record.format:d})"
    return _insert(f"{database}.ledger_identity", _IDENTITY_COLUMNS, [values])


def select_rows(database: str, keys: Iterable[str]) -> str:
    """Whole rows by key: key, stream, version, topic and state in hex, position, insert id."""
    return (
        "SELECT key, originator_id, toString(originator_version), hex(topic), hex(state), toString(notification_id), "
        f"insert_id FROM {database}.stored_events WHERE key IN ({_listed(keys)}) SETTINGS {_WAITING}, "
        "max_execution_time = 4"
    )


def select_streams(database: str) -> str:
    """All streams by their first positions. Reads every key."""
    return (
        "SELECT originator_id, toString(min(notification_id) AS first) FROM "
        f"{database}.stored_events WHERE startsWith(key, 'stream/') GROUP BY originator_id ORDER BY first "
        f"SETTINGS {_WAITING}, max_execution_time = 60"
    )


def select_counts(database: str) -> str:
    """How many events there are, and how many places in the order. Reads every key."""
    return (
        "SELECT toString(countIf(startsWith(key, 'stream/'))), "
        f"toString(countIf(startsWith(key, 'log/') AND topic != '{SEALED}')), toString(count()) "
        f"FROM {database}.stored_events SETTINGS {_WAITING}, max_execution_time = 60"
    )


def select_identity(database: str) -> str:
    """All identity records, the newest first."""
    return (
        "SELECT key, ledger_id, toString(epoch), toString(format) "
        f"FROM {database}.ledger_identity ORDER BY key DESC SETTINGS {_WAITING}, max_execution_time = 10"
    )


def _values(key: str, stream: str, version: int, topic: bytes, state: bytes, position: int, token: str) -> str:
    return (
        f"('{key}', '{stream}', {version:d}, unhex('{topic.hex()}'), unhex('{state.hex()}'), {position:d}, '{token}')"
    )


def _insert(table: str, columns: str, values: Sequence[str]) -> str:
    # An INSERT … SELECT: it is never collected with others and sent later, as an asynchronous insert would be.
    return f"INSERT INTO {table} SETTINGS {_STRICT} SELECT * FROM VALUES('{columns}', {', '.join(values)})"


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}'" for key in keys)
