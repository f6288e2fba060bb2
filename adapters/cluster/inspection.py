"""What one replica shows of a target before anything is read, and why that stands in the way of publishing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import Column, TargetRef
from ..clickhouse.dialects import Dialect
from ..clickhouse.quoting import literal
from .dialect import materialized_views_into, state_of_a_table
from .session import Endpoint, ReplicaSession
from .statements import ENGINES

_NAME = r"(`(?:[^`\\]|\\.)*`|[A-Za-z_][A-Za-z0-9_]*)"
_WRITING = re.compile(rf"\w+ MATERIALIZED VIEW (?:IF NOT EXISTS )?{_NAME}(?:\.{_NAME})? TO {_NAME}(?:\.{_NAME})?\s")


@dataclass(frozen=True, slots=True)
class Inspected:
    """One replica's answers. ``dependents`` are sentences' ends, ``members`` hosts and ports by shard."""

    database_engine: str | None
    table_engine: str | None
    dialect: Dialect
    members: dict[int, frozenset[tuple[str, int]]]
    dependents: tuple[str, ...] = ()
    ready: bool = field(default=True)


def inspect(session: ReplicaSession, target: TargetRef, cluster: str) -> Inspected:
    """Reads system tables only, and asks the replica's Keeper for its root. Raises EngineFailed."""
    session.query("SELECT count() AS nodes FROM system.zookeeper WHERE path = '/'")
    databases = session.query(f"SELECT engine FROM system.databases WHERE name = {literal(target.database)}")
    tables = session.query(state_of_a_table(session.dialect, target.database, target.table))
    dependents = _dependents(tables[0]) + _writers(session, target) if tables else ()
    return Inspected(
        databases[0]["engine"] if databases else None,
        tables[0]["engine"] if tables else None,
        session.dialect,
        read_members(session, cluster),
        dependents,
        _is_ready(session, target),
    )


def sentences(target: TargetRef, cluster: str, endpoints: Sequence[Endpoint], seen: dict[str, Inspected]) -> list[str]:
    """Why this target, as all replicas show it, cannot be replaced."""
    found: list[str] = []
    for replica, one in sorted(seen.items()):
        found += _cluster_sentences(replica, cluster, endpoints, one)
        found += _database_sentences(replica, target, one)
        found += _table_sentences(target, one)
    engines = {one.database_engine for one in seen.values()}
    if len(engines) > 1 and None not in engines:
        found.append(f"The database {target.database} has different engines on different replicas.")
    return list(dict.fromkeys(found))


def not_ready(seen: dict[str, Inspected]) -> EngineFailed | None:
    """A replica whose table cannot be written at the moment: it may pass by itself."""
    for replica, one in sorted(seen.items()):
        if not one.ready:
            return EngineFailed(
                ErrorCode.REPLICA_UNREACHABLE,
                f"The target is read-only on replica {replica}, or its session with the Keeper expired.",
                next="Repeat the same command once that replica has recovered.",
            )
    return None


def absent_types(columns: Sequence[Column], dialects: set[Dialect]) -> list[str]:
    """The first column, for each kind of server, whose type it does not have."""
    from ...domain.errors import DponeError

    found = []
    for dialect in dialects:
        try:
            dialect.require(columns)
        except DponeError as error:
            found.append(error.what)
    return found


def writes_into(statement: str, view_database: str, database: str, table: str) -> bool:
    """Whether the statement of a materialized view names this table as the one that it writes into."""
    match = _WRITING.match(statement)
    if match is None:
        return False
    first, second = match[3], match[4]
    written = (view_database, _plain(first)) if second is None else (_plain(first), _plain(second))
    return written == (database, table)


def _plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith("`") else name


def _writers(session: ReplicaSession, target: TargetRef) -> tuple[str, ...]:
    rows = session.query(materialized_views_into(session.dialect, target.database, target.table))
    writers = [
        f"{row['database']}.{row['name']}"
        for row in rows
        if session.dialect is not Dialect.V18
        or writes_into(row["statement"], row["database"], target.database, target.table)
    ]
    return _dependent(writers, "writing into it, and its rows would be lost with each refresh")


def _dependents(row: dict[str, Any]) -> tuple[str, ...]:
    """Plain views, and Distributed, Buffer and Merge tables, name the table and survive a swap; these do not."""
    readers = _paired(row["reader_databases"], row["reader_tables"])
    loaded = _paired(row["loaded_databases"], row["loaded_tables"])
    return (
        *_dependent(readers, "fed by inserts into it, and would silently miss the new rows"),
        *_dependent(loaded, "loaded from it, and would keep showing the old rows"),
    )


def _dependent(names: list[str], why: str) -> tuple[str, ...]:
    return (f"{', '.join(names)} ({why})",) if names else ()


def _paired(databases: Sequence[str], tables: Sequence[str]) -> list[str]:
    return sorted(f"{database}.{table}" for database, table in zip(databases, tables, strict=True))


def read_members(session: ReplicaSession, cluster: str) -> dict[int, frozenset[tuple[str, int]]]:
    """Hosts and ports of the cluster as this server knows it, by shard. Raises EngineFailed."""
    rows = session.query(
        "SELECT toUInt32(shard_num) AS shard, host_name, toUInt32(port) AS port FROM system.clusters "
        f"WHERE cluster = {literal(cluster)}"
    )
    shards = {int(row["shard"]) for row in rows}
    return {
        shard: frozenset((row["host_name"], int(row["port"])) for row in rows if row["shard"] == shard)
        for shard in shards
    }


def _is_ready(session: ReplicaSession, target: TargetRef) -> bool:
    rows = session.query(
        "SELECT is_readonly OR is_session_expired AS away FROM system.replicas "
        f"WHERE database = {literal(target.database)} AND table = {literal(target.table)}"
    )
    return not any(row["away"] for row in rows)


def _cluster_sentences(replica: str, cluster: str, endpoints: Sequence[Endpoint], one: Inspected) -> list[str]:
    if not one.members:
        return [f"Replica {replica} does not know the cluster {cluster}."]
    if len(one.members) > 1:
        return [f"The cluster {cluster} has {len(one.members)} shards; only one shard can be published to."]
    (members,) = one.members.values()
    missing = [endpoint.replica for endpoint in endpoints if (endpoint.host, endpoint.port) not in members]
    if missing:
        return [f"Replica {replica} knows the cluster {cluster} without {', '.join(missing)}, which is admitted."]
    return []


def _database_sentences(replica: str, target: TargetRef, one: Inspected) -> list[str]:
    match one.database_engine:
        case None:
            return [f"The database {target.database} does not exist on replica {replica}."]
        case "Ordinary" | "Atomic":
            return []
        case "Replicated":
            return [
                f"The database {target.database} has the engine Replicated, which sends statements on by itself; "
                "only Ordinary and Atomic databases can be published to."
            ]
        case engine:
            return [
                f"The database {target.database} has the engine {engine}; "
                "only Ordinary and Atomic databases can be published to."
            ]


def _table_sentences(target: TargetRef, one: Inspected) -> list[str]:
    if one.table_engine is None:
        return []
    if one.table_engine in ENGINES:
        return [f"{target} has dependents that a swap breaks: {dependent}." for dependent in one.dependents]
    match one.table_engine:
        case "View" | "MaterializedView" | "LiveView" | "WindowView":
            return [f"{target} is a view; only a replicated table can be replaced."]
        case "Dictionary":
            return [f"{target} is a dictionary; only a replicated table can be replaced."]
        case engine:
            return [f"{target} has the engine {engine}; only {', '.join(ENGINES)} can be replaced."]
