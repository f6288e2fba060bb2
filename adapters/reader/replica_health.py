"""Whether a replica's rows of one table may be counted: it replicates, its Keeper answers, and nothing is missing.

A replica is synchronised enough when it has taken up every entry of the table's log, when nothing but merges (which
change no row) waits in its queue, and when it suspects no part to be missing. That is asked of every replica, not of
the scanned one alone: an observation speaks of the table, and who reads another replica must find the same rows.

What a server says of its own session is not believed, for it says so too after it was frozen and lost the session. It
has to read the replica's own nodes through that session, and to find the one that lives only as long as the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...domain.reply import Outcome
from ..clickhouse.quoting import literal

Query = Callable[[str], list[dict[str, Any]]]


def problem(query: Query, database: str, table: str) -> Outcome | None:
    """What stands in the way at this moment, be it for a moment only; None: nothing."""
    of_table = f"WHERE database = {literal(database)} AND table = {literal(table)}"
    rows = query(
        "SELECT is_readonly, is_session_expired, parts_to_check, zookeeper_path, replica_name "
        f"FROM system.replicas {of_table}"
    )
    if not rows:
        return Outcome.OTHER_TABLE
    state = rows[0]
    if state["is_session_expired"]:
        return Outcome.NO_KEEPER
    if state["is_readonly"]:
        return Outcome.READ_ONLY
    path = state["zookeeper_path"]
    here = f"{path}/replicas/{state['replica_name']}"
    nodes = {row["name"]: row["value"] for row in query(_children("name, value", here))}
    if "is_active" not in nodes:
        return Outcome.NO_KEEPER
    if state["parts_to_check"] or nodes.get("is_lost") == "1":
        return Outcome.BEHIND
    # The queue after the log: an entry is in the queue before the pointer passes it.
    if _not_taken_up(query, path, nodes.get("log_pointer", "")) or _not_done(query, here):
        return Outcome.BEHIND
    return None


def _children(columns: str, path: str) -> str:
    return f"SELECT {columns} FROM system.zookeeper WHERE path = {literal(path)}"


def _not_taken_up(query: Query, path: str, pointer: str) -> bool:
    """Whether the table's log has entries at or after the pointer, a number that is empty before its first use."""
    if not pointer.isdecimal():
        return True
    later = f"name >= {literal(f'log-{int(pointer):010}')}"
    return bool(query(f"{_children('count() AS entries', path + '/log')} AND {later}")[0]["entries"])


def _not_done(query: Query, here: str) -> bool:
    """Whether anything but a merge waits, in the Keeper: a replica that starts has not read its queue yet.

    An entry's kind is a line of its own.
    """
    changing = f"position(value, {literal(chr(10) + 'merge' + chr(10))}) = 0"
    return bool(query(f"{_children('count() AS entries', here + '/queue')} AND {changing}")[0]["entries"])
