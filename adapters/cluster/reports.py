"""What the queue of distributed statements says became of those that name a candidate: for a person, never to decide.

Entries are trimmed after a while, a server reports only what it has carried out, and the queue's place in the Keeper
is configurable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from ..connections.clickhouse import error_name
from .dialect import queue_entries, queue_outcomes
from .session import Endpoint, ReplicaSession

QUEUE_PATH: Final = "/clickhouse/task_queue/ddl"
_VERBS: Final = ("CREATE", "RENAME", "EXCHANGE", "ALTER", "DROP")
_ENTRIES_MAX: Final = 10


def reported(
    session: ReplicaSession, endpoints: Sequence[Endpoint], candidate: str, path: str = QUEUE_PATH
) -> dict[str, str]:
    """By replica, for example ``CREATE carried out, RENAME failed (60 UNKNOWN_TABLE)``. Raises EngineFailed."""
    rows = session.query(queue_entries(session.dialect, path))
    naming = sorted((row["entry"], _verb(str(row["statement"]))) for row in rows if candidate in str(row["statement"]))
    told: dict[str, list[str]] = {}
    for entry, verb in naming[-_ENTRIES_MAX:]:
        outcomes = {
            unquote(str(row["host"])): str(row["outcome"])
            for row in session.query(queue_outcomes(session.dialect, path, entry))
        }
        for endpoint in endpoints:
            told.setdefault(endpoint.replica, []).append(f"{verb} {_outcome(endpoint, outcomes)}")
    return {replica: ", ".join(lines) for replica, lines in told.items()}


def _outcome(endpoint: Endpoint, outcomes: Mapping[str, str]) -> str:
    """A report begins with the error's number; what follows is the server's text and is not passed on."""
    text = outcomes.get(f"{endpoint.host}:{endpoint.port}", "")
    number = text.split("\n", 1)[0].strip()
    if not number.isdigit():
        return "not carried out yet"
    return "carried out" if number == "0" else f"failed ({error_name(int(number))})"


def _verb(statement: str) -> str:
    found = [(statement.find(verb), verb) for verb in _VERBS if verb in statement]
    return min(found)[1] if found else "statement"
