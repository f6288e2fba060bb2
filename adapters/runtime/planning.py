"""What a run would do, worked out without doing it. Only ``connected`` opens the engine, and changes nothing there."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...domain.configuration import Process, semantic, semantic_digest
from ...domain.errors import DponeError
from ...domain.identity import OperationKey, operation_id
from ...domain.names import candidate_name, name_problem, predecessor_name
from ...domain.steps import Request
from .attempt import Invocation, Running
from .claiming import preflight
from .compose import Composer
from .provisioning import embedded_folder, read_marker
from .routes import check_route, is_embedded
from .settings import Identity, Settings
from .staging import source_metrics, target_metrics

_UNKNOWN_GENERATION = "<generation>"
_NEW_PLATFORM = "<minted by the first run>"
_UNKNOWN_PLATFORM = "<read from the cluster>"


def plan(process: Process, identity: Identity, settings: Settings) -> dict[str, Any]:
    """The plan from manifest and home alone; ``problem`` says what a run would refuse. Raises DponeError."""
    marker = read_marker(embedded_folder(settings.home)) if is_embedded(process) else None
    platform = _NEW_PLATFORM if is_embedded(process) else _UNKNOWN_PLATFORM
    if marker is not None:
        platform = marker.platform_id
    key = _key(process, identity, platform)
    form = semantic(process)
    planned: dict[str, Any] = {
        "selector": process.selector,
        "key": asdict(key),
        "operation_id": str(operation_id(key)) if marker is not None else None,
        "semantic_digest": semantic_digest(form),
        "read": _read(process),
        "create": _create(process),
        "swap": _swap(process),
        "gates": [f"{gate.id}: {gate.type} ({gate.severity})" for gate in process.quality.gates],
        "observe": _observe(process),
        "capsule": _capsule(process),
        "keep_generations": process.sink.keep_generations,
    }
    planned["problem"] = _problem(process, settings)
    return {name: value for name, value in planned.items() if value is not None}


def connected(
    process: Process, identity: Identity, settings: Settings, composer: Composer, report: Any
) -> dict[str, Any]:
    """What source and platform say: the columns that would be created, and that nothing stands in the way.

    Takes the engine's folder for a moment. Raises DponeError with what a run would refuse.
    """
    composition = composer(settings, process)
    try:
        form = semantic(process)
        key = _key(process, identity, composition.platform_id)
        request = Request(key, form, semantic_digest(form))
        invocation = Invocation(by=settings.by, keep_generations=process.sink.keep_generations, same_command="")
        running = Running(composition.ports, request, invocation, report)
        running.rebuild()
        composition.ports.platform.acquire()
        preflight(running)
        definition, live = running.definition, running.slot.live
        return {
            "columns": {column.name: column.type for column in definition.columns} if definition is not None else {},
            "live_generation": live.generation if live is not None else None,
            "live_rows": live.rows if live is not None else None,
            "operation_state": running.operation.state.value,
            "held_by": running.slot.holder.operation if running.slot.holder is not None else None,
        }
    finally:
        composition.close()


def _problem(process: Process, settings: Settings) -> str | None:
    try:
        check_route(process, settings)
    except DponeError as refused:
        return refused.what
    return name_problem(process.sink.table)


def _key(process: Process, identity: Identity, platform: str) -> OperationKey:
    sink = process.sink
    return OperationKey(identity.dag_id, identity.run_id, process.name, platform, sink.database, sink.table)


def _read(process: Process) -> str:
    source = process.source
    what = source.path or (source.table.name if source.table is not None else "a query")
    if source.path is not None and source.table is not None:
        what = f"{source.path}, table {source.table.name}"
    return f"{source.type}: {what}, at most {process.sink.max_source_bytes:,} bytes"


def _create(process: Process) -> str:
    sink = process.sink
    ordered = f" ordered by {', '.join(sink.order_by)}" if sink.order_by else " without a sorting key"
    columns = "columns of the source" if sink.columns is None else f"{len(sink.columns)} columns"
    name = candidate_name(sink.table, _UNKNOWN_GENERATION, 1, 1)
    return f"{sink.database}.{name}: {columns}, {sink.engine}{ordered}"


def _swap(process: Process) -> str:
    sink = process.sink
    kept = predecessor_name(sink.table, _UNKNOWN_GENERATION)
    return f"candidate and {sink.database}.{sink.table}, once; what was live is kept as {kept}"


def _observe(process: Process) -> dict[str, Any]:
    acceptance = process.quality.acceptance
    if not acceptance.enabled:
        return {}
    captured = {
        "source": acceptance.capture_source,
        "staged": acceptance.capture_staged,
        "target": process.owes_target,
    }
    metrics = target_metrics(process)
    return {
        "of": [name for name, wanted in captured.items() if wanted],
        "mode": acceptance.mode.value,
        "null_counts": list(metrics.null_counts),
        "distinct_counts": list(metrics.distinct_counts),
        "typed_hash": source_metrics(process).typed_hash,
    }


def _capsule(process: Process) -> str | None:
    if not process.sink.durable:
        return None
    return "dpone.quality.replay.v2" if process.owes_target else "dpone.quality.replay.v1"
