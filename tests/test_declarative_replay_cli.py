"""The command boundary of the two replay examples, with the runtime's dependencies injected. Seconds, no server.

Both spellings, the batch and the flow, are the same load: same configuration, same evidence, same behaviour.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.cli.entry import run_command
from dpone.adapters.manifest import load_manifest
from dpone.domain.configuration import semantic, semantic_digest
from dpone.domain.ports import SwapForm

from .injected import ROWS, Injected

EXAMPLES = Path(__file__).parents[1] / "examples"
BATCH = (EXAMPLES / "batch/durable-replay-full-refresh.batch.yaml", "source.records")
FLOW = (EXAMPLES / "flow/durable-replay-full-refresh.flow.yaml", "refresh")
BOTH = pytest.mark.parametrize(("manifest", "selector"), [BATCH, FLOW], ids=["batch", "flow"])


@pytest.fixture
def injected(tmp_path: Path) -> Injected:
    return Injected(tmp_path)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPONE_HOME", str(tmp_path / "home"))
    for name in ("DPONE_LEDGER", "DPONE_DAG_ID", "DPONE_RUN_ID", "AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_DAG_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


class Command:
    """Runs the command line in this process and reads its one document."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, composer: Injected | None = None) -> tuple[int, dict[str, Any], str]:
        code = run_command([*words, "--format", "json"], composer)
        printed = self._capsys.readouterr()
        lines = printed.out.splitlines()
        assert len(lines) == 1, "exactly one document"
        return code, json.loads(lines[0]), printed.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def run_words(manifest: Path, selector: str, run_id: str = "demo_001") -> tuple[str, ...]:
    return ("run", str(manifest), "--selector", selector, "--dag-id", "replay_demo", "--run-id", run_id)


@BOTH
def test_the_example_runs_as_written(manifest: Path, selector: str, command: Command, injected: Injected) -> None:
    code, document, diagnostic = command(*run_words(manifest, selector), composer=injected)
    assert (code, diagnostic) == (0, "")
    result = document["result"]
    evidence = result["details"]["reconciliation_metrics"]["quality_replay"]
    assert document["passed"] is True
    assert (document["selector"], document["process"]) == (selector, "refresh")
    assert (document["dag_id"], document["run_id"], document["attempts"]) == ("replay_demo", "demo_001", 1)
    assert (result["extracted_rows"], result["inserted_rows"], result["final_rows"]) == (ROWS, ROWS, ROWS)
    assert evidence["format"] == "dpone.quality.replay.v2"
    assert (evidence["capsule_state"], evidence["replayed"]) == ("COMPLETE", False)
    assert evidence["gates"] == [
        {
            "id": "rows",
            "type": "row_count_reconciliation",
            "severity": "error",
            "passed": True,
            "observed": {"source": ROWS, "staged": ROWS},
            "tolerance": {"mode": "absolute", "value": 0},
        }
    ]
    counted = {"row_count": ROWS, "null_counts": {"record_id": 0}, "distinct_counts": {"record_id": ROWS}}
    assert evidence["acceptance"] == {"source": counted, "staged": counted, "target": counted}
    assert result["replay_details"]["target_commit"] == "proven"
    assert result["replay_details"]["governance"] == "complete"
    assert [swap.form for swap in injected.platform.swaps] == [SwapForm.FIRST]


@BOTH
def test_the_same_command_again_reads_and_publishes_nothing(
    manifest: Path, selector: str, command: Command, injected: Injected
) -> None:
    _, first, _ = command(*run_words(manifest, selector), composer=injected)
    code, again, _ = command(*run_words(manifest, selector), composer=injected)
    assert (code, again["attempts"]) == (0, 2)
    assert (injected.source.opens, len(injected.platform.swaps)) == (1, 1)
    assert again["result"]["extracted_rows"] == again["result"]["final_rows"] == 0
    before = first["result"]["details"]["reconciliation_metrics"]["quality_replay"]
    after = again["result"]["details"]["reconciliation_metrics"]["quality_replay"]
    assert after["replayed"] is True
    assert after["core_digest"] == before["core_digest"]
    assert after["receipt"]["id"] != before["receipt"]["id"], "a stored receipt never authorises a success"
    assert after["receipt"]["accepted_by_attempt"] == 2


@BOTH
def test_another_run_is_another_operation_and_swaps_once_more(
    manifest: Path, selector: str, command: Command, injected: Injected
) -> None:
    command(*run_words(manifest, selector), composer=injected)
    code, second, _ = command(*run_words(manifest, selector, "demo_002"), composer=injected)
    assert (code, second["run_id"]) == (0, "demo_002")
    assert [swap.form for swap in injected.platform.swaps] == [SwapForm.FIRST, SwapForm.EXCHANGE]
    code, first, _ = command(*run_words(manifest, selector), composer=injected)
    assert (code, first["result"]["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_MISMATCH")
    assert first["result"]["replay_details"]["successor"]["run_id"] == "demo_002"


def test_both_spellings_are_one_configuration_and_one_operation(command: Command, injected: Injected) -> None:
    forms = [semantic(load_manifest(manifest).select(selector)) for manifest, selector in (BATCH, FLOW)]
    assert forms[0] == forms[1]
    assert semantic_digest(forms[0]) == semantic_digest(forms[1])
    command(*run_words(*BATCH), composer=injected)
    code, again, _ = command(*run_words(*FLOW), composer=injected)
    assert (code, injected.source.opens) == (0, 1)
    assert again["result"]["details"]["reconciliation_metrics"]["quality_replay"]["replayed"] is True


def test_the_same_identity_with_another_configuration_names_what_differs(
    command: Command, injected: Injected, tmp_path: Path
) -> None:
    changed = tmp_path / "changed.flow.yaml"
    changed.write_text(FLOW[0].read_text().replace("distinct_counts: [record_id]", "distinct_counts: []"))
    command(*run_words(*FLOW), composer=injected)
    code, document, diagnostic = command(*run_words(changed, FLOW[1]), composer=injected)
    assert (code, document["result"]["error_code"]) == (2, "DPONE_REPLAY_IDENTITY_CONFLICT")
    assert "quality.acceptance.distinct_counts" in diagnostic
    assert injected.source.opens == 1


@BOTH
def test_validate_and_plan_understand_the_example(manifest: Path, selector: str, command: Command) -> None:
    code, validated, _ = command("validate", str(manifest), "--selector", selector)
    (item,) = validated["result"]["items"]
    assert (code, item["target"], item["durable"]) == (0, "analytics.replay_records", True)
    code, planned, _ = command("plan", str(manifest), "--selector", selector, "--run-id", "demo_001")
    (item,) = planned["result"]["items"]
    assert (code, item["semantic_digest"]) == (0, validated["result"]["items"][0]["semantic_digest"])
    assert item["read"].startswith("clickhouse: records")
    assert item["observe"]["of"] == ["source", "staged", "target"]
    assert "ledger must be shared" in item["problem"], "what is missing for a run is said"


@BOTH
@pytest.mark.parametrize(
    ("ledger", "code", "said"),
    [
        ([], "DPONE_LEDGER_NOT_SHARED", "keeper://"),
        (["--ledger", "keeper://127.0.0.1:1/dpone"], "DPONE_CONNECTION_NOT_FOUND", "DPONE_CONN_REPLAY_TARGET_HOST"),
    ],
)
def test_what_a_cluster_needs_and_lacks_is_said_before_anything_is_touched(
    manifest: Path, selector: str, ledger: list[str], code: str, said: str, command: Command, tmp_path: Path
) -> None:
    ended, document, diagnostic = command(*run_words(manifest, selector), *ledger)
    assert (ended, document["result"]["error_code"]) == (2, code)
    assert said in diagnostic
    assert not (tmp_path / "home").exists()


def test_a_missing_selector_is_found_when_there_are_several(command: Command, tmp_path: Path) -> None:
    two = tmp_path / "two.flow.yaml"
    process = FLOW[0].read_text().split("processes:\n")[1]
    second = process.replace("name: refresh", "name: other").replace("replay_records}", "other_records}")
    two.write_text(FLOW[0].read_text() + second)
    code, document, _ = command("run", str(two))
    assert (code, document["result"]["error_code"]) == (2, "DPONE_MANIFEST_SELECTOR_REQUIRED")
    assert "refresh" in document["result"]["errors"][0]
    assert "other" in document["result"]["errors"][0]


@pytest.mark.parametrize("kind", ["batch", "flow", "flow-fragment"])
def test_the_schema_is_the_document(kind: str, command: Command) -> None:
    code, schema, _ = command("schema", kind)
    assert code == 0
    assert schema["$schema"].startswith("https://json-schema.org/")
