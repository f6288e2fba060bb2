"""One connection to a ClickHouse source: pinned settings, what a table or query yields, and safe failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ...domain.errors import DponeError
from ...domain.limits import BATCH_ROWS
from ...domain.tables import Column
from ..clickhouse.quoting import identifier, literal, table_name
from ..connections.clickhouse import error_name, interrupt, opened
from ..connections.connection import Connection
from ..connections.refusals import invalid
from .clickhouse_parts import QUERY, Parts
from .refusals import declaration, shown, unreadable

_THROW: Final = ["read", "result", "timeout", "group_by", "sort", "distinct", "join", "set", "transfer"]
_PINNED: Final[Mapping[str, int | str]] = {
    "readonly": 2,  # nothing but reading, and these settings
    "max_block_size": BATCH_ROWS,
    "preferred_block_size_bytes": 16 * 1024 * 1024,  # of 1 MB by default: a block of rows of 100 bytes would be 8,192
    "low_cardinality_allow_in_native_format": 0,
    "extremes": 0,
    "join_use_nulls": 0,
    "transform_null_in": 0,
    "aggregate_functions_null_for_empty": 0,
    "skip_unavailable_shards": 0,
    "fallback_to_stale_replicas_for_distributed_queries": 0,
    "final": 0,
    "limit": 0,
    "offset": 0,
    "apply_deleted_mask": 1,
    "use_query_cache": 0,
    "session_timezone": "",
    # A profile's limit must fail the read: "break" would end it early and call that a result.
    **{f"{kind}_overflow_mode": "throw" for kind in _THROW},
}
_NOT_SETTABLE: Final = (164, 452)
"""READONLY, SETTING_CONSTRAINT_VIOLATION."""
_NOT_THERE: Final = (60, 81)
"""UNKNOWN_TABLE, UNKNOWN_DATABASE."""
_TROUBLE: Final = (159, 160, 164, 173, 201, 202, 209, 210, 241, 279, 425, 452, 497)
"""Failures that say nothing about the query's text: time, memory, quotas, permissions, network."""


@dataclass(slots=True)
class ServerSession:
    """A connected server and the settings of every query on it. Used by one thread at a time, for one read."""

    client: Any
    connection: Connection
    settings: dict[str, int | str] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def open(cls, connection: Connection) -> Iterator[ServerSession]:
        """Connect and pin. Raises DponeError."""
        with opened(connection) as client:
            session = cls(client, connection)
            names = ", ".join(literal(name) for name in _PINNED)
            known = session.rows(f"SELECT name FROM system.settings WHERE name IN ({names})", "system.settings")
            session.settings = {name: _PINNED[name] for (name,) in known}
            yield session

    def rows(self, statement: str, name: str) -> list[tuple[Any, ...]]:
        """A small result. ``name`` stands in errors."""
        with self._failing(name):
            return list(self.client.execute(statement, settings=self.settings))

    def stream(self, statement: str, name: str, columns: int) -> Iterator[Any]:
        """Arrow batches of so many columns, one a block of the server."""
        from .clickhouse_blocks import BlockTooLarge, read_blocks

        with self._failing(name):
            try:
                yield from read_blocks(self.client, statement, self.settings, columns)
            except BlockTooLarge:
                raise unreadable(
                    f"The server sends {shown(name)} in blocks of over 16 million rows, or 2 GiB of text a column.",
                    "Rewrite source.query so that its joins and arrays multiply rows less, or read the rows in parts.",
                ) from None

    def table_columns(self, database: str, table: str) -> list[Column]:
        """Names and server types of what ``SELECT *`` yields. Raises SourceFailed when there is no such table."""
        name = f"{database}.{table}"
        rows = self.rows(f"DESCRIBE TABLE {table_name(database, table)}", name)
        return [Column(row[0], row[1]) for row in rows if row[2] not in ("ALIAS", "MATERIALIZED", "EPHEMERAL")]

    def query_columns(self, query: str) -> list[Column]:
        """Names and server types of a query's result; nothing of it runs.

        Raises SourceFailed (DPONE_MANIFEST_INVALID) unless the server takes it as one SELECT.
        """
        from clickhouse_driver.errors import ServerException

        try:
            found = self.client.execute(f"DESCRIBE TABLE ({query}\n)", settings=self.settings)
        except ServerException as error:
            if int(error.code) in _TROUBLE:
                raise self._explained(error, "source.query") from None
            raise declaration(
                f"ClickHouse does not accept source.query as one SELECT ({error_name(int(error.code))}).",
                "Try it in clickhouse-client, then correct source.query.",
            ) from None
        except Exception as error:
            raise self._lost(error, "source.query") from None
        return [Column(row[0], row[1]) for row in found]

    def parts(self, database: str, table: str) -> Parts | None:
        """The active parts; None when the engine is not of the MergeTree family, which alone has them."""
        where = {"database": literal(database), "table": literal(table)}
        name = f"{database}.{table}"
        found = self.rows(
            "SELECT engine, toString(metadata_modification_time) FROM system.tables "
            "WHERE database = {database} AND name = {table}".format(**where),
            name,
        )
        if not found or not str(found[0][0]).endswith("MergeTree"):
            return None
        return Parts.of(str(found[0][1]), self.rows(QUERY.format(**where), name))

    def interrupt(self) -> None:
        """End what another thread waits for."""
        interrupt(self.client)

    @contextmanager
    def _failing(self, name: str) -> Iterator[None]:
        from clickhouse_driver.errors import ServerException

        try:
            yield
        except (DponeError, GeneratorExit):
            raise
        except ServerException as error:
            raise self._explained(error, name) from None
        except Exception as error:
            raise self._lost(error, name) from None

    def _explained(self, error: Any, name: str) -> DponeError:
        """The server's own message may quote a value: only its number and name are passed on."""
        code = int(error.code)
        if code in _NOT_SETTABLE:
            return invalid(
                f"The user of the connection {self.connection.reference!r}",
                f"may not set what this read depends on ({error_name(code)})",
                "Give the user a profile with readonly = 2 and without constraints.",
            )
        if code in _NOT_THERE:
            return unreadable(f"The server has no table {shown(name)}.", "Check source.table and the database.")
        if code == 497:
            return unreadable(
                f"The user of the connection {self.connection.reference!r} may not read what {shown(name)} needs.",
                "GRANT SELECT on the table, on system.parts, system.tables, system.columns and system.settings.",
            )
        return unreadable(
            f"ClickHouse failed while {shown(name)} was read ({error_name(code)}).",
            "Look at the server's log, then repeat the command.",
        )

    def _lost(self, error: Exception, name: str) -> DponeError:
        from clickhouse_driver.errors import Error

        with_connection = f"The connection {self.connection.reference!r}"
        if isinstance(error, TimeoutError):
            what = f"{with_connection} stayed silent for too long while {shown(name)} was read."
        elif isinstance(error, (Error, OSError, EOFError)):
            what = f"{with_connection} was lost while {shown(name)} was read ({type(error).__name__})."
        else:
            what = f"{with_connection} brought what are no rows of {shown(name)}."
            return unreadable(what, "Check that it leads to a ClickHouse server, then repeat the same command.")
        return unreadable(what, "Check that the server runs, then repeat the same command.")


def selected(columns: list[tuple[str, str]]) -> str:
    """The select list. No aliases: one that equals another column's name would change what that name means."""
    return ", ".join(selects.format(identifier(name)) for name, selects in columns)
