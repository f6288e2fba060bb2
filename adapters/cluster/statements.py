"""The statements that every server understands alike, as text."""

from __future__ import annotations

from ...domain.tables import TableDefinition
from ..clickhouse.definitions import ENGINES as PLAIN_ENGINES
from ..clickhouse.definitions import column_list, keys
from ..clickhouse.quoting import identifier, literal, table_name

ENGINES = tuple(f"Replicated{engine}" for engine in PLAIN_ENGINES)
"""The engines of a target: they need no parameters of their own."""

REPLICA_MACRO = "{replica}"
NO_SUCH_TABLES = ("__dpone_no_such_table_a", "__dpone_no_such_table_b", "__dpone_no_such_table_c", "__dpone_no_such")
"""Names for a probe: candidate, arm, table, predecessor. Nothing ever creates them."""


def path_of(platform_id: str, generation: str) -> str:
    """A generation's own place in the Keeper; no two generations ever share one."""
    return f"/clickhouse/dpone/{platform_id}/{generation}"


def create_table(
    database: str, name: str, definition: TableDefinition, path: str, replica: str, cluster: str | None
) -> str:
    """``definition`` has passed its refusals. ``replica`` may be the server's own macro."""
    where = f" ON CLUSTER {identifier(cluster)}" if cluster is not None else ""
    engine = f"{definition.engine}({literal(path)}, {literal(replica)})"
    return f"CREATE TABLE {table_name(database, name)}{where} {column_list(definition)} ENGINE = {engine}" + keys(
        definition
    )


def rename_table(database: str, old: str, new: str) -> str:
    """Fails on the server when ``new`` exists."""
    return f"RENAME TABLE {table_name(database, old)} TO {table_name(database, new)}"
