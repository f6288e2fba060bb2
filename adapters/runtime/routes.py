"""Which routes there are: from any source to the embedded engine, or to a replicated cluster."""

from __future__ import annotations

from ...domain.configuration import EMBEDDED, Process, SourceType
from ...domain.errors import DponeError, ErrorCode
from ...domain.names import generation_of
from .settings import Settings


def is_embedded(process: Process) -> bool:
    """Whether the target is the engine in this process."""
    return process.sink.connection_ref == EMBEDDED


def kept_name(process: Process) -> str | None:
    """The table beside the target that the process reads, when it is a rollback; None for every other process."""
    source, sink = process.source, process.sink
    if source.type is not SourceType.CLICKHOUSE or source.table is None:
        return None
    beside = source.connection_ref == sink.connection_ref and source.table.schema == sink.database
    return source.table.name if beside and generation_of(source.table.name) is not None else None


def check_route(process: Process, settings: Settings) -> None:
    """Refuse what no route can carry, from the manifest alone, before anything is opened. Raises DponeError."""
    sink = process.sink
    if sink.staging_database not in (None, sink.database):
        raise _unsupported("Candidates stand in the target's own database.", "Leave sink.staging out.")
    if sink.lineage:
        raise _unsupported("Lineage columns are not available in this release.", "Set sink.options.lineage to false.")
    if is_embedded(process):
        _check_embedded(process)
    else:
        _check_cluster(process, settings)


def _check_embedded(process: Process) -> None:
    if process.sink.cluster is not None:
        raise _unsupported(
            "The embedded engine is a single server and the manifest names a cluster.",
            "Leave the cluster out, or name a server's connection in sink.connection_ref.",
        )


def _check_cluster(process: Process, settings: Settings) -> None:
    sink = process.sink
    if sink.cluster is None:
        raise _unsupported(
            f"The target connection {sink.connection_ref!r} is a ClickHouse server and the manifest names no cluster; "
            "publishing is proven on every replica of one, or on the embedded engine.",
            "Name it in physical_design.storage.clickhouse.cluster, or set sink.connection_ref to embedded.",
        )
    if not (sink.engine.startswith("Replicated") and sink.engine.endswith("MergeTree")):
        raise _unsupported(
            f"The table engine {sink.engine} keeps its rows on one server; the replicas of a cluster would differ.",
            "Set physical_design.storage.clickhouse.engine to ReplicatedMergeTree.",
        )
    if not sink.order_by:
        raise _unsupported(
            "A replicated table needs a sorting key.", "Set physical_design.storage.clickhouse.order_by."
        )
    if settings.ledger_url.startswith("sqlite:"):
        raise DponeError(
            ErrorCode.LEDGER_NOT_SHARED,
            "A cluster's ledger must be shared: an SQLite file is known to this machine alone.",
            safe="Nothing was read or changed.",
            next="Name it with --ledger or DPONE_LEDGER: keeper://…, keepermap://… or postgresql://…",
        )


def _unsupported(what: str, next_: str) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_UNSUPPORTED, what, safe="Nothing was read or changed.", next=next_, exit_code=2
    )
