"""The document that ``dpone run`` prints: exactly one, whatever happened. Its shape is part of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .capsule import observation_data
from .errors import DponeError
from .operation import Operation, State
from .quality import GateResult


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for. Parts that are not known yet are None."""

    manifest: str | None = None
    process: str | None = None
    selector: str | None = None
    dag_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What this invocation did and knows."""

    operation_id: str | None = None
    operation: Operation | None = None
    attempt: int | None = None
    extracted_rows: int = 0
    inserted_rows: int = 0
    final_rows: int = 0
    duration_seconds: float = 0.0


def document(asked: Asked, done: Done, error: DponeError | None) -> dict[str, Any]:
    """The document of CONTRACT: ``passed`` true exactly when ``error`` is None."""
    operation = done.operation
    return {
        **_known(
            {
                "manifest": asked.manifest,
                "process": asked.process,
                "selector": asked.selector,
                "dag_id": asked.dag_id,
                "run_id": asked.run_id,
            }
        ),
        "passed": error is None,
        "result": {
            "status": "success" if error is None else "error",
            "error_code": None if error is None else error.code.value,
            "errors": [] if error is None else list(error.errors),
            "extracted_rows": done.extracted_rows,
            "inserted_rows": done.inserted_rows,
            "updated_rows": 0,
            "final_rows": done.final_rows,
            "duration_seconds": round(done.duration_seconds, 3),
            "details": {"reconciliation_metrics": _metrics(done)},
            "replay_details": _replay_details(asked, done, error),
        },
        "attempts": operation.attempt if operation is not None else 0,
    }


def _metrics(done: Done) -> dict[str, Any]:
    operation = done.operation
    if operation is None or operation.state is State.NEW:
        return {}
    evidence = quality_replay(operation, done.attempt)
    return {} if evidence is None else {"quality_replay": evidence}


def quality_replay(operation: Operation, attempt: int | None) -> dict[str, Any] | None:
    """The evidence of a durable operation, as far as there is any; None for an operation that owes none."""
    generation = operation.generation
    if generation is None or generation.core is None or operation.key is None:
        return None
    core = generation.core
    acceptance = {
        "source": observation_data(core.source),
        "staged": observation_data(core.staged),
        "target": observation_data(operation.target),
    }
    receipt = operation.receipt
    return _known(
        {
            "format": core.format,
            "capsule_state": operation.capsule_state,
            "core_digest": generation.core_digest,
            "replayed": core.fence != attempt,
            "replayed_from": {
                "operation_id": core.operation,
                "run_id": core.run_id,
                "load_id": core.load_id,
                "attempt": core.fence,
            },
            "gates": [gate_data(gate) for gate in core.gates],
            "acceptance": {**_known(acceptance), **_differences(operation)},
            "receipt": None if receipt is None else _receipt(receipt.receipt, receipt.generation, receipt.attempt),
            "warnings": list(warnings(operation)) or None,
        }
    )


def warnings(operation: Operation) -> tuple[str, ...]:
    """What a person should see although the run passed."""
    found = []
    if operation.waived is not None:
        found.append(f"The target observation was waived (warn_only): {operation.waived}")
    if operation.generation is not None:
        found += [
            f"Gate {gate.id} did not pass (severity warning)."
            for gate in operation.generation.gates or ()
            if not gate.passed and gate.severity == "warning"
        ]
    if operation.differences:
        found.append(f"Target and staged observations differ: {', '.join(operation.differences)}")
    return tuple(found)


def gate_data(gate: GateResult) -> dict[str, Any]:
    """One gate as the document shows it."""
    return {
        "id": gate.id,
        "type": gate.type,
        "severity": gate.severity,
        "passed": gate.passed,
        "observed": dict(gate.observed),
        **{name: _number(value) for name, value in gate.parameters.items()},
    }


def _number(value: Any) -> Any:
    if isinstance(value, Mapping) and "value" in value:
        exact = Decimal(value["value"])
        return {**value, "value": int(exact) if exact == exact.to_integral_value() else float(exact)}
    return value


def _receipt(receipt: str, generation: str, attempt: int) -> dict[str, Any]:
    return {"id": receipt, "generation": generation, "accepted_by_attempt": attempt}


def _differences(operation: Operation) -> dict[str, Any]:
    return {"differences": list(operation.differences)} if operation.differences else {}


def _replay_details(asked: Asked, done: Done, error: DponeError | None) -> dict[str, Any]:
    operation = done.operation
    details: dict[str, Any] = {"operation_id": done.operation_id}
    if operation is not None and operation.state is not State.NEW:
        details["target_commit"] = operation.target_commit
        details["governance"] = operation.governance
        details["state"] = operation.state.value
        generation = operation.generation
        if generation is not None:
            details["original"] = {"run_id": asked.run_id, "load_id": generation.id}
        if operation.failure is not None:
            details["candidate"] = operation.failure.candidate
    elif done.operation_id is not None:
        details |= {"target_commit": "not_started", "governance": "blocked"}
    details["current"] = _known({"run_id": asked.run_id, "attempt": done.attempt}) or None
    if error is not None:
        details["cause"] = None if error.cause is None else error.cause.value
        details["safe"] = error.safe
        details["next"] = error.next
        details |= error.known
    return _known(details)


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is not known is absent."""
    return {name: value for name, value in data.items() if value is not None}
