"""The document that ``dpone run`` prints, made by the code that prints it from an example's events."""

from __future__ import annotations

import json
from typing import Any

from tests.domain import examples as x

from dpone.domain.capsule import digest
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.operation import State, fold
from dpone.domain.outcome import Asked, Done, document

_ASKED = Asked("orders.batch.yaml", "load", "files.orders", x.KEY.dag_id, x.KEY.run_id)


def success() -> str:
    """A completed load."""
    operation = fold(x.UNTIL[State.COMPLETE])
    done = Done(x.OPERATION, operation, 1, 3, 3, 3, 2.413)
    return _block(document(_ASKED, done, None))


def failure() -> str:
    """A gate that failed."""
    operation = fold((*x.STAGED_CANDIDATE, x.staged_observed(), x.gates_evaluated(passed=False), x.failed()))
    error = DponeError(
        ErrorCode.EVIDENCE_FAILED,
        "1 quality gate failed: rows (min_rows): staged 3 — outside the limit.",
        errors=("rows (min_rows): staged 3 — outside the limit",),
        safe="The live table sales.orders is untouched.",
        next="Correct the source or the gate, then repeat the command.",
    )
    return _block(document(_ASKED, Done(x.OPERATION, operation, 1, 3, 3, 0, 1.52), error))


def _block(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, indent=2)
    return f"```json\n{text.replace(digest(x.core()), digest(x.core())[:15] + '…')}\n```"
