"""Connections to the ledger's server: bounded in every wait, used again until one sees an error, never after it."""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

import psycopg
from eventsourcing.persistence import IntegrityError
from eventsourcing.postgres import PostgresDatastore
from psycopg.rows import DictRow, dict_row

from .postgres_faults import TAKEN, explain, explain_connecting, is_conflict, is_lost
from .postgres_url import Place
from .recorder import ReplyLost

R = TypeVar("R")
_MARGIN_SECONDS: Final = 2.0
"""How much longer than the server's own timeouts we wait: its answer is certain, our giving up is not."""
_CONNECT_SECONDS_MIN: Final = 2


class BoundedConnection(psycopg.Connection[DictRow]):
    """A connection that waits for an answer for so long and no longer, also for a server that stands still.

    libpq has no such bound: a frozen server's kernel goes on acknowledging what we send.
    """

    reply_seconds: float = 12.0

    def wait(self, gen: Any, *rest: Any, **options: Any) -> Any:
        return super().wait(_bounded(gen, self.reply_seconds), *rest, **options)


def _bounded(gen: Generator[Any, Any, R], seconds: float) -> Generator[Any, Any, R]:
    end = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise psycopg.OperationalError("no answer in time")
            wanted = gen.send(ready)
    except StopIteration as stop:
        return cast(R, stop.value)


class Datastore(PostgresDatastore):
    """Transactions on the ledger's server, with one sentence for every fault. The library's own pool stays empty:
    it would repeat an insert whose reply was lost, and take the loser of a race for the winner."""

    def __init__(self, place: Place, wait_seconds: float) -> None:
        super().__init__("", "", "", "", "", schema=place.schema, lock_timeout=round(wait_seconds))
        self.place = place
        self.name = place.name
        self.wait_seconds = wait_seconds
        self._free: list[BoundedConnection] = []
        self._closed = False

    def register_type_adapters(self) -> None:
        """The library's composite type is not used."""

    @contextmanager
    def get_connection(self) -> Iterator[Any]:
        """A connection to read from; each statement is a transaction of its own. Raises LedgerFailed."""
        with self._used() as connection:
            try:
                yield connection
            except psycopg.Error as error:
                raise explain(error, self.name) from None

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A connection to write with. Raises IntegrityError for a key that is taken, ReplyLost, LedgerFailed."""
        with self._used() as connection:
            try:
                yield connection
            except psycopg.Error as error:
                if is_conflict(error):
                    raise IntegrityError(TAKEN) from None
                if is_lost(error):
                    raise ReplyLost from explain(error, self.name)
                raise explain(error, self.name) from None

    def close(self) -> None:
        self._closed = True
        while self._free:
            _end(self._free.pop())

    @contextmanager
    def _used(self) -> Iterator[BoundedConnection]:
        connection = self._take()
        done = False
        try:
            yield connection
            done = not connection.closed
        except IntegrityError:
            done = not connection.closed
            raise
        finally:
            if done and not self._closed:
                self._free.append(connection)
            else:
                _end(connection)

    def _take(self) -> BoundedConnection:
        while self._free:
            connection = self._free.pop()
            if _is_quiet(connection):
                return connection
            _end(connection)
        return self._open()

    def _open(self) -> BoundedConnection:
        logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)  # its messages name host, port and user
        try:
            connection = BoundedConnection.connect(
                **_options(self.place.parameters, self.wait_seconds), autocommit=True, row_factory=dict_row
            )
        except psycopg.Error as error:
            raise explain_connecting(error, self.name) from None
        connection.reply_seconds = self.wait_seconds + _MARGIN_SECONDS
        return connection


def _options(parameters: Mapping[str, Any], wait_seconds: float) -> dict[str, Any]:
    milliseconds = round(wait_seconds * 1000)
    settings = {
        "synchronous_commit": "on",  # also where a role or a database says otherwise
        "default_transaction_isolation": r"read\ committed",  # an append must see what was committed before its lock
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": milliseconds,
        "search_path": "pg_catalog",
    }
    return {
        **parameters,
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        "application_name": "dpone ledger",
        "client_encoding": "UTF8",
        "connect_timeout": max(_CONNECT_SECONDS_MIN, round(wait_seconds)),
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }


def _is_quiet(connection: BoundedConnection) -> bool:
    """Whether an idle connection is still there: a server that went away has said so, or hung up."""
    if connection.closed:
        return False
    words = select.poll()
    words.register(connection.fileno(), select.POLLIN)
    return not words.poll(0)


def _end(connection: BoundedConnection) -> None:
    with suppress(psycopg.Error):
        connection.close()
