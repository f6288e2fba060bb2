"""SQL sessions for a ledger that lies behind a ClickHouse server: bounded, thrown away after any failure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ...domain.errors import DponeError
from ...domain.limits import LEDGER_WAIT_SECONDS
from ...ledger.sql import Connect, SqlFailed
from .clickhouse import opened
from .connection import Connection

if TYPE_CHECKING:
    from ..runtime.settings import Settings

_SETTINGS: Final = {"max_query_size": 4 * 1024 * 1024}
_PARAMS: Final = {"connect_timeout": LEDGER_WAIT_SECONDS / 2, "receive_timeout": LEDGER_WAIT_SECONDS + 2}
"""Longer than the statements' own limits: the server's answer is certain, our giving up is not."""


class ServerSql:
    """Implements :class:`dpone.ledger.sql.SqlSession` over ``clickhouse-driver``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = replace(connection, params={**_PARAMS, **connection.params})
        self._lock = Lock()
        self._stack = ExitStack()
        self._client: Any = None
        with self._lock:
            self._connect()

    def run(self, statement: str) -> Sequence[Sequence[str]]:
        """The rows. Raises SqlFailed."""
        from clickhouse_driver import errors

        with self._lock:
            try:
                if self._client is None:
                    self._connect()
                answer = self._client.execute(statement)
            except DponeError:
                raise SqlFailed(None) from None  # it was there before, so it is away, not wrong
            except errors.ServerException as error:
                self._drop()
                raise SqlFailed(int(error.code), exists="Node exists" in str(error)) from None
            except (errors.Error, OSError, EOFError):
                self._drop()
                raise SqlFailed(None) from None
            except BaseException:
                self._drop()  # interrupted in the middle of an answer
                raise
        return answer if isinstance(answer, list) else []

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _connect(self) -> None:
        self._client = self._stack.enter_context(opened(self._connection, _SETTINGS))

    def _drop(self) -> None:
        self._client = None
        with suppress(Exception):
            self._stack.close()


def connect_by(settings: Settings) -> Connect:
    """What binds the connection reference of a ledger's URL, by the providers of these settings."""
    return lambda reference: ServerSql(settings.connection(reference))
