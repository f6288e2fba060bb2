"""One native connection to one replica: opened for a few statements, thrown away after any error, never reconnected.

Credentials and TLS come from the resolved connection, host and port from the endpoint. Messages name the replica and
the server's error by number and name; they hold no host, no port and nothing that the server said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...domain.errors import DponeError, EngineFailed, ErrorCode
from ..clickhouse.dialects import Dialect
from ..connections.clickhouse import interrupt, opened
from ..connections.connection import Connection
from ..connections.refusals import Unanswered
from .failures import refused_by_server, refused_to_connect, silent, unreachable

CONNECT_SECONDS: Final = 5.0
REPLY_SECONDS: Final = 30.0
_DATABASE: Final = "system"
"""Every server has it and every user may enter it; all statements name their own."""
_UNREADABLE: Final = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, MemoryError)
"""What the driver runs into where the bytes are not what they claim to be."""
_FIRST_PRESENT: Final = (23, 3)
"""Older servers than this are spoken to as to 18.16: what that one lacks, they may lack too."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one replica answers. Its ``repr`` names the replica only."""

    replica: str
    host: str = field(repr=False)
    port: int = field(repr=False)


@dataclass(slots=True)
class ReplicaSession:
    """A connected replica, used by one thread at a time.

    Both methods raise EngineFailed: REPLICA_UNREACHABLE when the connection is lost or the reply does not come within
    the bound (whether the statement ran is then unknown); with ``engine_code`` when the server answers with an error.
    """

    client: Any
    endpoint: Endpoint
    version: tuple[int, int, int]
    usable: bool = True

    @classmethod
    @contextmanager
    def open(
        cls,
        connection: Connection,
        endpoint: Endpoint,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        reply_seconds: float = REPLY_SECONDS,
    ) -> Iterator[ReplicaSession]:
        """Connect; ``connect_seconds`` also bounds the greeting, ``reply_seconds`` every silence after it.

        Raises EngineFailed (REPLICA_UNREACHABLE, CONNECTION_REFUSED), DponeError (REQUEST_INVALID).
        """
        params = {**connection.params, "connect_timeout": connect_seconds}
        here = replace(connection, host=endpoint.host, port=endpoint.port, database=_DATABASE, params=params)
        with ExitStack() as stack:
            try:
                client = stack.enter_context(opened(here))
            except Unanswered:
                raise unreachable(endpoint.replica) from None
            except DponeError as error:
                raise refused_to_connect(endpoint.replica, error) from None
            client.connection.socket.settimeout(reply_seconds)
            client.connection.sync_request_timeout = min(reply_seconds, connect_seconds)
            info = client.connection.server_info
            version = (int(info.version_major), int(info.version_minor), int(info.version_patch))
            yield cls(client, endpoint, version)

    @property
    def dialect(self) -> Dialect:
        """How this server is spoken to."""
        return Dialect.PRESENT if self.version >= _FIRST_PRESENT else Dialect.V18

    @property
    def settings_travel_as_text(self) -> bool:
        """Old servers read numeric settings in binary, signed ones in another way than the driver writes them."""
        from clickhouse_driver.defines import DBMS_MIN_REVISION_WITH_SETTINGS_SERIALIZED_AS_STRINGS as FIRST

        return bool(self.client.connection.server_info.used_revision >= FIRST)

    def query(self, statement: str, settings: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """A small result: its rows, each by alias."""
        rows, columns = self._sent(statement, settings)
        names = [name for name, _ in columns]
        if any(len(row) != len(names) for row in rows):
            raise self._no_reply()
        return [dict(zip(names, row, strict=True)) for row in rows]

    def execute(self, statement: str, settings: Mapping[str, Any] | None = None) -> None:
        """A statement whose result, if any, is of no interest."""
        self._sent(statement, settings)

    def _sent(self, statement: str, settings: Mapping[str, Any] | None) -> tuple[Any, Any]:
        with self.failing():
            try:
                result: tuple[Any, Any] = self.client.execute(
                    statement, settings=dict(settings or {}), with_column_types=True
                )
            except _UNREADABLE:
                raise self._no_reply() from None
        return result

    def _no_reply(self) -> EngineFailed:
        return unreachable(self.endpoint.replica, "answers with what is no reply of a ClickHouse server")

    @contextmanager
    def failing(self) -> Iterator[None]:
        """The driver's failures as ours. After any of them, and after an interruption, this session is used up."""
        from clickhouse_driver import errors

        if not self.usable:
            raise EngineFailed(
                ErrorCode.INTERNAL, f"A connection to replica {self.endpoint.replica} was used again after an error."
            )
        self.usable = False
        try:
            yield
        except errors.ServerException as error:
            raise refused_by_server(self.endpoint.replica, int(error.code)) from None
        except (errors.SocketTimeoutError, TimeoutError):
            raise silent(self.endpoint.replica) from None
        except (errors.Error, OSError, EOFError):
            raise unreachable(self.endpoint.replica, "does not answer any more") from None
        self.usable = True

    def interrupt(self) -> None:
        """End what another thread waits for on this session."""
        self.usable = False
        interrupt(self.client)
