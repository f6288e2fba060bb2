"""The examples on the engine in process, as they are written: both spellings are one operation."""

from __future__ import annotations

import pytest

from tests.cli.sandbox import ROOT, Sandbox

BATCH = "examples/batch/durable-replay-embedded.batch.yaml"
FLOW = "examples/flow/durable-replay-embedded.flow.yaml"
WORDS = ("--dag-id", "replay_demo", "--run-id", "demo_001", "--format", "json")


@pytest.mark.parametrize(("first", "second"), [(BATCH, FLOW), (FLOW, BATCH)])
def test_either_spelling_continues_the_other(sandbox: Sandbox, first: str, second: str) -> None:
    loaded = sandbox.dpone("run", str(ROOT / first), *WORDS)
    assert (loaded.code, loaded.result["final_rows"]) == (0, 240)
    evidence = loaded.result["details"]["reconciliation_metrics"]["quality_replay"]
    counted = {
        "row_count": 240,
        "null_counts": {"record_id": 0, "paid_at": 34},
        "distinct_counts": {"record_id": 240},
    }
    assert evidence["acceptance"] == {"source": counted, "staged": counted, "target": counted}
    again = sandbox.dpone("run", str(ROOT / second), *WORDS)
    assert (again.code, again.result["extracted_rows"], again.document["attempts"]) == (0, 0, 2)
