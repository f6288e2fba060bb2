"""Whether replicas hold the very same rows: counted and hashed on each of them, row by row and in any order.

A table's name may differ from one replica to another; its rows may not. The hash compares servers with each other and
is not the typed hash of the gates: it costs a twentieth of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import Column
from ..clickhouse.dialects import Dialect
from ..clickhouse.quoting import table_name
from .abreast import abreast
from .dialect import hashed, settings_of_a_scan
from .looking import read_columns
from .session import ReplicaSession

_WAIT_SECONDS: Final = 0.2
_SLICE_SECONDS: Final = 20
"""How long one statement waits: a replica that hangs is noticed after that, however long the whole wait may be."""
_ARGUMENTS_MAX: Final = 200
"""Of one hash function; wider tables are hashed in pieces."""

_PASSING: Final = (159, 225, 242, 999)
"""TIMEOUT_EXCEEDED, NO_ZOOKEEPER, TABLE_IS_READ_ONLY, KEEPER_EXCEPTION: a server that has just come back."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one replica holds: how many rows, and a hash of them modulo 2**64."""

    rows: int
    digest: int


def held(session: ReplicaSession, database: str, name: str) -> Held:
    """Counts and hashes all rows. Raises EngineFailed."""
    columns = read_columns(session, database, name)
    statement = held_statement(database, name, columns, session.dialect)
    (row,) = session.query(statement, settings_of_a_scan(session.dialect))
    return Held(int(row["held_rows"]), int(row["held_digest"]))


def held_statement(database: str, name: str, columns: Sequence[Column], dialect: Dialect) -> str:
    """Aliases ``held_rows`` and ``held_digest``. Values of one row are hashed together, and the rows' hashes added."""
    parts = [part for column in columns for part in hashed(column, dialect)]
    pieces = [parts[start : start + _ARGUMENTS_MAX] for start in range(0, len(parts), _ARGUMENTS_MAX)]
    hashes = [f"cityHash64({', '.join(piece)})" for piece in pieces]
    whole = hashes[0] if len(hashes) == 1 else f"cityHash64({', '.join(hashes)})"
    return f"SELECT count() AS held_rows, sum({whole}) AS held_digest FROM {table_name(database, name)}"


def wait_for_agreement(
    sync: Mapping[str, Callable[[int], object]], count: Mapping[str, Callable[[], Held]], seconds: float
) -> Held:
    """Synchronise each replica, then compare, until all hold the same.

    ``sync`` takes the seconds that it may wait. Raises EngineFailed: REPLICA_UNREACHABLE at once for one that does not
    answer; PUBLICATION_UNKNOWN when they still differ at the end.
    """
    deadline = time.monotonic() + seconds
    while True:
        left = max(1, min(_SLICE_SECONDS, int(deadline - time.monotonic())))
        late = abreast({replica: partial(piece, left) for replica, piece in sync.items()}).failed
        answers = abreast(dict(count)) if not late else None
        if answers is not None and not answers.failed and len(set(answers.given.values())) == 1:
            return next(iter(answers.given.values()))
        failed = {**late, **(answers.failed if answers is not None else {})}
        for error in failed.values():
            if error.engine_code not in _PASSING:
                raise error
        if time.monotonic() >= deadline:
            raise _differ(failed, answers.given if answers is not None else {})
        time.sleep(_WAIT_SECONDS)


def _differ(failed: Mapping[str, EngineFailed], given: Mapping[str, Held]) -> EngineFailed:
    for error in failed.values():
        return error
    shown = ", ".join(f"{replica}: {held.rows:,} rows" for replica, held in sorted(given.items()))
    return EngineFailed(
        ErrorCode.PUBLICATION_UNKNOWN,
        f"The replicas did not come to hold the same rows within the bound ({shown}).",
        safe="The live table was not touched.",
        next="Repeat the same command.",
    )
