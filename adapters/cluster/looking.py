"""One replica's tables at one moment, although statements may run meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import Column, TableIdentity
from ..clickhouse.identity import matching, named_like
from ..clickhouse.quoting import literal
from .dialect import columns_of_tables
from .identity import read_identities
from .session import ReplicaSession

_READS_MAX = 5


def read_tables(session: ReplicaSession, database: str, table: str) -> dict[str, TableIdentity]:
    """The target's and this product's tables for it. Raises EngineFailed.

    A swap between two of the statements could give one table's columns to another's path: the paths are read before
    and after, until both reads agree.
    """
    before = _paths(session, database, table)
    for _ in range(_READS_MAX):
        found = read_identities(session.query, database, named_like(table), session.dialect)
        after = _paths(session, database, table)
        if before == after == {name: one.id for name, one in found.items() if has_keeper_path(one)}:
            return matching(table, found.items())
        before = after
    raise EngineFailed(
        ErrorCode.REPLICA_UNREACHABLE,
        f"The tables of replica {session.endpoint.replica} change faster than they can be looked at.",
        safe="Everything was left in place.",
        next="Repeat the same command.",
    )


def has_keeper_path(identity: TableIdentity) -> bool:
    """Whether the table replicates. Any other one is nobody's generation: its id names no table but an engine."""
    return not identity.id.startswith("local:")


def read_columns(session: ReplicaSession, database: str, name: str) -> Sequence[Column]:
    """A table's columns in order; none when there is no such table. Raises EngineFailed."""
    rows = session.query(columns_of_tables(session.dialect, database, [name]), {"max_threads": 1})
    return [Column(row["name"], row["type"]) for row in rows]


def keeper_path(session: ReplicaSession, database: str, name: str) -> tuple[str, str] | None:
    """Keeper path and replica name of one table, None when it is not there or does not replicate."""
    rows = session.query(
        "SELECT zookeeper_path, replica_name FROM system.replicas "
        f"WHERE database = {literal(database)} AND table = {literal(name)}"
    )
    return (rows[0]["zookeeper_path"], rows[0]["replica_name"]) if rows else None


def has_swapped(session: ReplicaSession, database: str, table: str, path: str, others: Sequence[str]) -> bool:
    """Whether the table with this Keeper path stands under its target's name, and under none of the others any more.

    A server renames by giving a table its new name, then taking the old one away.
    """
    names = ", ".join(map(literal, (table, *others)))
    rows = session.query(
        f"SELECT table, zookeeper_path FROM system.replicas WHERE database = {literal(database)} AND table IN ({names})"
    )
    return rows == [{"table": table, "zookeeper_path": path}]


def check_replicates(session: ReplicaSession, database: str, name: str) -> None:
    """Raise EngineFailed unless the server reaches its Keeper and the table, where it is, has a session with it.

    A server of 2018 that renames a table without its Keeper has moved the files when it fails, and not the name: at its
    next start the table is empty, and what it had is given up as lost. Its Keeper is asked, for the flags lag behind.
    """
    session.query("SELECT count() AS nodes FROM system.zookeeper WHERE path = '/'")
    rows = session.query(
        "SELECT is_readonly OR is_session_expired AS away FROM system.replicas "
        f"WHERE database = {literal(database)} AND table = {literal(name)}"
    )
    if rows and rows[0]["away"]:
        raise EngineFailed(
            ErrorCode.REPLICA_UNREACHABLE,
            f"A table of replica {session.endpoint.replica} has no session with its Keeper.",
            safe="Everything was left in place.",
            next="Repeat the same command once the replica is no longer read-only.",
        )


def _paths(session: ReplicaSession, database: str, table: str) -> dict[str, str]:
    rows = session.query(
        "SELECT table, zookeeper_path FROM system.replicas "
        f"WHERE database = {literal(database)} AND ({named_like(table, 'table')})"
    )
    return {row["table"]: row["zookeeper_path"] for row in rows}
