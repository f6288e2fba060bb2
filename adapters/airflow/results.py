"""What a passed run leaves in Airflow: a bounded summary in XCom, and the extra of its asset events."""

from __future__ import annotations

from typing import Any, Final

from ..program.outcome import Outcome

WARNINGS_SHOWN_MAX: Final = 4
SUMMARY_BYTES_MAX: Final = 8 * 1024
"""What a summary can have at most: every part of it is bounded. The evidence itself stays in the ledger."""


def summary(outcome: Outcome) -> dict[str, Any]:
    """The task's return value. Row counts are what this try did; a replay's are zero."""
    evidence = outcome.document["result"]["details"]["reconciliation_metrics"].get("quality_replay", {})
    gates = evidence.get("gates", [])
    return {
        "operation_id": outcome.operation_id,
        "process": outcome.process,
        "dag_id": outcome.dag_id,
        "run_id": outcome.run_id,
        "attempt": outcome.attempt,
        "replayed": outcome.replayed,
        "target_commit": outcome.target_commit,
        "governance": outcome.governance,
        "generation": outcome.generation,
        "core_digest": outcome.core_digest,
        "receipt_id": evidence.get("receipt", {}).get("id"),
        "gates": {"passed": sum(gate["passed"] for gate in gates), "evaluated": len(gates)},
        "extracted_rows": outcome.extracted_rows,
        "inserted_rows": outcome.inserted_rows,
        "final_rows": outcome.final_rows,
        "duration_seconds": outcome.duration_seconds,
        "warnings": list(outcome.warnings[:WARNINGS_SHOWN_MAX]),
    }


def asset_extra(outcome: Outcome) -> dict[str, Any]:
    """What an asset event carries: enough for a consumer to ask the ledger about this very load."""
    return {
        "operation_id": outcome.operation_id,
        "core_digest": outcome.core_digest,
        "generation": outcome.generation,
    }
