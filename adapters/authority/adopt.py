"""``platform adopt DB.TABLE``: a person lets the target be what every replica shows, absence included.

For a table that this product did not make, or that somebody altered or replaced since. Only while nobody holds the
slot; the slot's version is read before looking. An adopted table is never dropped by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from ...domain import events as e
from ...domain import platform_events as p
from ...domain.errors import DponeError, EngineFailed, ErrorCode
from ...domain.identity import platform_stream
from ...domain.platform import Platform
from ...domain.ports import StreamAppend
from ...domain.tables import TableDefinition, TableIdentity, TargetRef
from ..clickhouse.identity import key_columns
from ..clickhouse.quoting import literal
from ..cluster.looking import has_keeper_path, read_columns
from ..cluster.platform import ReplicatedPlatform
from ..cluster.session import ReplicaSession
from ..cluster.statements import ENGINES
from .asked import Answer, Asked, OpenLedger
from .belonging import first_markers, opened, platform_of
from .memory import Remembered, read_slot, require_free
from .refusals import UNTOUCHED, invalid, not_admitted, unsupported
from .topology import endpoint_of, session_on

if TYPE_CHECKING:
    from ...ledger.store import EventLedger


@dataclass(frozen=True, slots=True)
class Review:
    """Who decided, and why."""

    reviewed_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Shown:
    """The table as all replicas show it."""

    identities: Mapping[str, TableIdentity]
    definition: TableDefinition
    rows: int


def adopt(asked: Asked, open_ledger: OpenLedger, table: str, review: Review) -> Answer:
    """Adopt what every admitted replica shows under ``table`` (``database.table``).

    Raises DponeError: REQUEST_INVALID; NOT_ADMITTED where nothing is admitted, or replicas show different tables;
    EVIDENCE_UNSUPPORTED for a table that cannot be a target; TARGET_BLOCKED; REPLICA_UNREACHABLE.
    """
    database, dot, name = table.partition(".")
    if not dot or not database or not name:
        raise invalid("The table is not named as DATABASE.TABLE.", "dpone platform adopt DATABASE.TABLE …")
    markers = first_markers(asked, lambda marker: not marker.databases or database in marker.databases)
    with opened(open_ledger) as ledger:
        platform, _ = platform_of(ledger, markers)
        if not platform.admitted:
            raise not_admitted(
                "No replica of this platform is admitted.",
                f"dpone platform admit --connection {asked.connection.reference} --cluster {asked.cluster}",
            )
        target = TargetRef(platform.platform_id, database, name)
        known = read_slot(ledger, target)
        require_free(ledger, known.slot)
        return _adopt(asked, ledger, platform, target, known, review)


def _adopt(
    asked: Asked, ledger: EventLedger, platform: Platform, target: TargetRef, known: Remembered, review: Review
) -> Answer:
    seen = _look(asked, platform, target)
    live = known.slot.live
    if dict(live.identities if live is not None else {}) == dict(seen.identities if seen is not None else {}):
        return Answer((), {"table": str(target), "generation": live.generation if live is not None else None})
    adopted = p.TableAdopted(
        at=asked.now(),
        target=target,
        generation=str(uuid4()) if seen is not None else None,
        definition=seen.definition if seen is not None else None,
        rows=seen.rows if seen is not None else None,
        identities=seen.identities if seen is not None else {},
        reviewed_by=review.reviewed_by,
        reason=review.reason,
        by=asked.by,
    )
    before = [] if known.slot.target is not None else [e.SlotOpened(at=asked.now(), target=target)]
    ledger.append(
        [
            StreamAppend(known.stream, known.slot.version, (*before, adopted)),
            StreamAppend(platform_stream(platform.platform_id), platform.version, (adopted,)),
        ]
    )
    what = (
        f"The table {target} with {seen.rows:,} rows is adopted" if seen is not None else f"No table {target}: adopted"
    )
    return Answer((f"{what}, as all {len(platform.admitted)} replicas show it.",), _result(target, adopted))


def _result(target: TargetRef, adopted: p.TableAdopted) -> dict[str, object]:
    return {"table": str(target), "generation": adopted.generation, "rows": adopted.rows}


def _look(asked: Asked, platform: Platform, target: TargetRef) -> _Shown | None:
    """The table as every replica shows it; None when none has one. Raises DponeError when they differ."""
    endpoints = [endpoint_of(replica) for replica in platform.replicas]
    looking = ReplicatedPlatform(asked.connection, endpoints, asked.cluster, platform.platform_id)
    identities: dict[str, TableIdentity | None] = {}
    for look in looking.look(target):
        if not look.reachable:
            raise EngineFailed(
                ErrorCode.REPLICA_UNREACHABLE,
                f"Replica {look.replica} does not answer.",
                safe=UNTOUCHED,
                next="Repeat the same command once it does.",
            )
        identities[look.replica] = look.tables.get(target.table)
    if len(set(identities.values())) != 1:
        raise _different(target)
    held = {name: identity for name, identity in identities.items() if identity is not None}
    if not held:
        _demand_absent(asked, platform, target)
        return None
    if not all(has_keeper_path(identity) for identity in held.values()):
        raise unsupported(
            f"{target} is not a replicated table: nothing tells it apart from another one under its name.",
            "Replace it by a ReplicatedMergeTree table, or publish under another name.",
        )
    looking.synchronise(target.database, target.table)
    with session_on(asked.connection, endpoints[0]) as session:
        definition = _definition(session, target)
    return _Shown(held, definition, min(looking.row_count(target.database, target.table).values()))


def _definition(session: ReplicaSession, target: TargetRef) -> TableDefinition:
    rows = session.query(
        "SELECT engine, sorting_key, partition_key FROM system.tables "
        f"WHERE database = {literal(target.database)} AND name = {literal(target.table)}"
    )
    if not rows or rows[0]["engine"] not in ENGINES:
        raise unsupported(
            f"{target} has an engine that cannot be published over; it must be one of {', '.join(ENGINES)}.",
            "Publish under another name.",
        )
    columns = tuple(read_columns(session, target.database, target.table))
    partition = rows[0]["partition_key"] or None
    return TableDefinition(columns, rows[0]["engine"], key_columns(rows[0]["sorting_key"]), partition)


def _demand_absent(asked: Asked, platform: Platform, target: TargetRef) -> None:
    """A look shows tables; a view or a dictionary of that name must not pass for absence."""
    for replica in platform.replicas:
        with session_on(asked.connection, endpoint_of(replica)) as session:
            rows = session.query(
                "SELECT count() AS named FROM system.tables "
                f"WHERE database = {literal(target.database)} AND name = {literal(target.table)}"
            )
        if rows[0]["named"]:
            raise _different(target)


def _different(target: TargetRef) -> DponeError:
    return not_admitted(
        f"The replicas do not all show the same table under {target}.",
        "Make them equal, then repeat the same command.",
    )
