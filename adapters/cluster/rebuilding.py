"""A generation made again on a replica that lost it: at its own Keeper path, from what the other replicas hold."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import TableDefinition, TableIdentity
from ..clickhouse.quoting import literal
from .dialect import create_database
from .looking import keeper_path
from .session import ReplicaSession
from .statements import create_table


def recreate(
    session: ReplicaSession,
    database: str,
    database_engine: str,
    name: str,
    definition: TableDefinition,
    identity: TableIdentity,
) -> None:
    """Create the table empty beside the others; the server fetches the rows by itself. Raises EngineFailed.

    Its name in the Keeper is a new one: the lost table's is still taken by what is left of it there. One that exists
    already under ``name`` with this identity was made by an earlier try and is kept.
    """
    found = keeper_path(session, database, name)
    if found is not None and found[0] == identity.id:
        return
    session.execute(create_database(session.dialect, database, database_engine))
    replica = fresh_name(session.endpoint.replica, names_at(session, identity.id))
    session.execute(create_table(database, name, definition, identity.id, replica, None))


def names_at(session: ReplicaSession, path: str) -> list[str]:
    """The names that replicas of one table have in the Keeper. Raises EngineFailed, also when the path is gone."""
    rows = session.query(f"SELECT name FROM system.zookeeper WHERE path = {literal(path + '/replicas')}")
    return [row["name"] for row in rows]


def fresh_name(replica: str, taken: Sequence[str]) -> str:
    """``replica_2_rebuilt_1`` and so on."""
    return next(name for number in range(1, len(taken) + 2) if (name := f"{replica}_rebuilt_{number}") not in taken)


def nobody_has_it(database: str) -> EngineFailed:
    """There is nothing to rebuild from."""
    return EngineFailed(
        ErrorCode.PUBLICATION_UNKNOWN,
        f"No replica holds the new generation in the database {database} any more.",
        safe="Everything was left in place.",
        next="dpone ops list",
    )
