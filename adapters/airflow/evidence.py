"""What a consumer may rely on, asked from the ledger: did this operation complete, and is its table still the live one?

Airflow is not asked and not imported. A task that somebody marked as success has no evidence here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...domain.configuration import Process
from ...domain.identity import OperationKey, operation_id
from ...domain.operation import Operation, State

if TYPE_CHECKING:
    from ...ledger.store import EventLedger
    from ..runtime.lookup import Found


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which operation: by its id, or by the run and the process of a manifest."""

    operation: str | None = None
    manifest: Path | None = None
    selector: str | None = None
    dag_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A completed operation. ``core_digest`` and ``receipt_id`` are None for one without a durable replay."""

    operation_id: str
    dag_id: str
    run_id: str
    process: str
    target: str
    generation: str
    core_digest: str | None
    receipt_id: str | None

    def data(self) -> dict[str, Any]:
        """For XCom: every part is bounded."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evidence, or why there is none; ``can_still_come`` tells whether waiting makes sense."""

    evidence: Evidence | None
    why_not: str = ""
    can_still_come: bool = False
    operation: str | None = None


def ask(wanted: Wanted, ledger: str | None, environ: Mapping[str, str], require_live: bool = True) -> Verdict:
    """Ask the ledger. Raises DponeError when it cannot be asked, or when the question is not complete."""
    from ..cli.opening import opened_ledger
    from ..runtime.lookup import one_operation

    with opened_ledger(environ, ledger) as store:
        if wanted.operation is not None:
            return _judged(one_operation(store, wanted.operation), require_live)
        for stream in _streams(store, wanted):
            return _judged(one_operation(store, stream), require_live)
    return Verdict(None, f"The ledger knows no operation of {wanted.dag_id}, run {wanted.run_id}, for it.", True)


def ask_here(wanted: Wanted, ledger: str | None, dag_id: str, require_live: bool) -> Verdict:
    """The same in a task of this DAG: connections are bound as in any other task."""
    return ask(wanted, ledger, {**os.environ, "AIRFLOW_CTX_DAG_ID": dag_id}, require_live)


def _streams(ledger: EventLedger, wanted: Wanted) -> Iterator[str]:
    """The ids under which the operation would stand, one a platform, that the ledger has events of."""
    from ..authority.memory import all_platforms
    from ..manifest.load import load_manifest

    if wanted.manifest is None or wanted.dag_id is None or wanted.run_id is None:
        return
    process = load_manifest(wanted.manifest).select(wanted.selector)
    for platform in all_platforms(ledger):
        stream = operation_id(_key(process, wanted.dag_id, wanted.run_id, platform.platform_id))
        if ledger.read(stream):
            yield str(stream)


def _key(process: Process, dag_id: str, run_id: str, platform_id: str) -> OperationKey:
    return OperationKey(dag_id, run_id, process.name, platform_id, process.sink.database, process.sink.table)


def _judged(found: Found, require_live: bool) -> Verdict:
    operation, stream = found.operation, str(found.stream)
    if operation.state in (State.FAILED, State.RETIRED):
        return Verdict(None, f"The operation {stream} is {operation.state.value}: it did not complete.", False, stream)
    if operation.state is not State.COMPLETE:
        return Verdict(None, f"The operation {stream} is {operation.state.value}, not yet COMPLETE.", True, stream)
    live = found.slot.live
    generation = operation.generation
    if require_live and (live is None or generation is None or live.generation != generation.id):
        return Verdict(
            None, f"The operation {stream} completed, but its table is no longer the live one.", False, stream
        )
    return Verdict(_evidence(stream, operation))


def _evidence(stream: str, operation: Operation) -> Evidence:
    key, generation = operation.key, operation.generation
    if key is None or generation is None:
        raise AssertionError("an operation that completed has both")
    return Evidence(
        operation_id=stream,
        dag_id=key.dag_id,
        run_id=key.run_id,
        process=key.process,
        target=f"{key.database}.{key.table}",
        generation=generation.id,
        core_digest=generation.core_digest,
        receipt_id=None if operation.receipt is None else operation.receipt.receipt,
    )
