"""The marker on each replica: which platform its tables belong to, and which ledger remembers them, at which epoch.

``dpone_authority.platform`` is a plain local table, written to each replica directly and read back from each. Rows are
only added: of one platform's rows the one with the highest epoch, then the highest revision, holds. Times are shown
and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..clickhouse.quoting import literal
from ..cluster.session import Endpoint, ReplicaSession
from ..connections.connection import Connection
from .refusals import other_ledger
from .topology import session_on

DATABASE: Final = "dpone_authority"
TABLE: Final = "platform"
_CHARACTERS_MAX: Final = 1_000
_COLUMNS: Final = "platform_id, cluster, ledger_id, epoch, revision, databases, written_at"


@dataclass(frozen=True, slots=True)
class Marker:
    """What one replica says of one platform. An empty ``databases`` means all."""

    platform_id: str
    cluster: str
    ledger_id: str
    epoch: int
    databases: tuple[str, ...]
    revision: int = 1


def read_markers(session: ReplicaSession) -> tuple[Marker, ...]:
    """The rows that hold, one a platform, sorted by platform; empty where nothing was ever provisioned.

    Raises LedgerFailed (LEDGER_CORRUPT) for a row that this product cannot have written.
    """
    exists = session.query(
        f"SELECT count() AS tables FROM system.tables WHERE database = {literal(DATABASE)} AND name = {literal(TABLE)}"
    )
    if not exists[0]["tables"]:
        return ()
    rows = session.query(
        f"SELECT platform_id, cluster, ledger_id, epoch, revision, databases FROM {DATABASE}.{TABLE} "
        "ORDER BY platform_id, epoch, revision"
    )
    found = (_marker(row, session.endpoint.replica) for row in rows)
    return tuple({marker.platform_id: marker for marker in found}.values())


def _marker(row: Mapping[str, object], replica: str) -> Marker:
    """Whoever may create tables there can make this one, with columns of any type."""
    match row:
        case {
            "platform_id": str(platform_id),
            "cluster": str(cluster),
            "ledger_id": str(ledger_id),
            "epoch": int(epoch),
            "revision": int(revision),
            "databases": [*databases],
        } if epoch > 0 and revision > 0 and _are_names([platform_id, ledger_id, cluster, *databases]):
            return Marker(platform_id, cluster, ledger_id, epoch, tuple(map(str, databases)), revision)
    raise other_ledger(f"Replica {replica} bears a marker that no ledger has written.")


def _are_names(found: Sequence[object]) -> bool:
    return all(isinstance(name, str) and 0 < len(name) <= _CHARACTERS_MAX for name in found) and all(
        isinstance(name, str) and name.isprintable() for name in found[:2]
    )


def create_authority(session: ReplicaSession) -> None:
    """The database and the table, where they are missing."""
    session.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    session.execute(
        f"CREATE TABLE IF NOT EXISTS {DATABASE}.{TABLE} (platform_id String, cluster String, ledger_id String, "
        "epoch UInt32, revision UInt32, databases Array(String), written_at String) "
        "ENGINE = MergeTree ORDER BY (platform_id, epoch, revision)"
    )


def write_marker(session: ReplicaSession, marker: Marker, at: str) -> bool:
    """Make ``marker`` the one that holds, unless it does already; read it back. True: a row was added.

    Raises LedgerFailed (LEDGER_CORRUPT) when something else is read back.
    """
    create_authority(session)
    held = _held(session, marker.platform_id)
    if held == marker:
        return False
    named = f"[{', '.join(literal(name) for name in marker.databases)}]" if marker.databases else "emptyArrayString()"
    texts = [literal(text) for text in (marker.platform_id, marker.cluster, marker.ledger_id)]
    session.execute(
        f"INSERT INTO {DATABASE}.{TABLE} ({_COLUMNS}) SELECT {', '.join(texts)}, "
        f"toUInt32({marker.epoch}), toUInt32({marker.revision}), {named}, {literal(at)}"
    )
    if _held(session, marker.platform_id) != marker:
        raise other_ledger(f"Replica {session.endpoint.replica} does not show the marker that was written to it.")
    return True


def raise_epoch(connection: Connection, endpoints: Sequence[Endpoint], ledger_id: str, epoch: int, at: str) -> int:
    """Let every marker of this ledger on these replicas say ``epoch``: how many rows were added. Idempotent.

    Raises LedgerFailed (LEDGER_CORRUPT) for a marker with a higher epoch; EngineFailed for a replica that is not there.
    """
    written = 0
    for endpoint in endpoints:
        with session_on(connection, endpoint) as session:
            for held in read_markers(session):
                if held.ledger_id != ledger_id:
                    continue
                if held.epoch > epoch:
                    raise other_ledger(f"Replica {endpoint.replica} belongs to a later epoch of this ledger already.")
                if held.epoch < epoch:
                    written += write_marker(session, replace(held, epoch=epoch, revision=1), at)
    return written


def covering(markers: Iterable[Marker], database: str) -> tuple[Marker, ...]:
    """The markers whose platforms hold targets in this database."""
    return tuple(marker for marker in markers if not marker.databases or database in marker.databases)


def _held(session: ReplicaSession, platform_id: str) -> Marker | None:
    return next((marker for marker in read_markers(session) if marker.platform_id == platform_id), None)
