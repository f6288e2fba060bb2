"""Gates on the real engine: what fails leaves the live table alone and its candidate for inspection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dpone.adapters.cli.entry import run_command
from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.adapters.runtime.compose import Composition, compose
from dpone.adapters.runtime.provisioning import embedded_folder
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from dpone.domain.tables import Column
from tests.cli.sandbox import ROWS_GATE, Sandbox, engine_rows, engine_tables, rows_of

HASH_GATE = {"id": "hash", "type": "typed_hash_reconciliation"}


def _tolerance(mode: str, value: Any) -> dict[str, Any]:
    return {**ROWS_GATE, "tolerance": {"mode": mode, "value": value}}


@pytest.mark.parametrize(
    "gate", [ROWS_GATE, HASH_GATE, _tolerance("percent", 0), {"id": "m", "type": "min_rows", "rows": 300}]
)
def test_gates_that_hold(sandbox: Sandbox, gate: dict[str, Any]) -> None:
    sandbox.write_manifest(gates=[gate])
    done = sandbox.run()
    assert done.code == 0
    (seen,) = done.result["details"]["reconciliation_metrics"]["quality_replay"]["gates"]
    assert (seen["id"], seen["passed"]) == (gate["id"], True)


@pytest.mark.parametrize("durable", [True, False])
def test_a_failing_gate_leaves_everything_as_the_contract_says(sandbox: Sandbox, durable: bool) -> None:
    sandbox.write_manifest(durable=durable)
    assert sandbox.run("r1").code == 0
    live = engine_tables(sandbox.engine)["rows"]

    sandbox.write_rows(rows_of(2))
    sandbox.write_manifest(durable=durable, gates=[{"id": "many", "type": "min_rows", "rows": 302}])
    failed = sandbox.run("r2")
    assert (failed.code, failed.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED")
    tables = engine_tables(sandbox.engine)
    assert tables["rows"] == live
    assert engine_rows(sandbox.engine) == rows_of(1)
    candidate = failed.details["candidate"]
    assert set(tables) == {"rows", candidate}
    (left,) = sandbox.dpone("ops", "list", "--format", "json").result["leftovers"]
    assert (left["table"], left["role"]) == (f"db.{candidate}", "candidate")
    assert candidate in sandbox.dpone("ops", "list").out

    repeated = sandbox.run("r2")
    assert repeated.code == 1
    assert repeated.details["candidate"] != candidate, "the same command is a new generation"
    assert set(engine_tables(sandbox.engine)) == {"rows", repeated.details["candidate"]}, "the earlier one is dropped"

    sandbox.write_manifest(durable=durable)
    done = sandbox.run("r3")
    assert done.code == 0, "the next run is not blocked"
    assert engine_rows(sandbox.engine) == rows_of(2)
    assert repeated.details["candidate"] not in engine_tables(sandbox.engine)


class Lossy(EmbeddedPlatform):
    """Three rows vanish on their way into the candidate."""

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[Any]) -> None:
        super().fill(database, name, columns, (batch.slice(3) for batch in batches))


def lossy(settings: Settings, process: Process) -> Composition:
    composition = compose(settings, process)
    platform = Lossy(embedded_folder(settings.home) / "data")
    return replace(composition, ports=replace(composition.ports, platform=platform))


@pytest.mark.parametrize(
    ("mode", "value", "code"),
    [("absolute", 0, 1), ("absolute", 2, 1), ("absolute", 3, 0), ("percent", 0.9, 1), ("percent", 1, 0)],
)
def test_rows_that_vanish_are_held_against_the_tolerance(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, mode: str, value: Any, code: int
) -> None:
    monkeypatch.setenv("DPONE_HOME", str(sandbox.home))
    sandbox.write_rows(rows_of(1))
    sandbox.write_manifest(gates=[_tolerance(mode, value)])
    assert run_command(sandbox.words(), lossy) == code
    left = engine_rows(sandbox.engine)
    assert left == (None if code else rows_of(1)[3:])


def test_a_warning_is_shown_and_fails_nothing(sandbox: Sandbox) -> None:
    sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 301, "severity": "warning"}])
    done = sandbox.run()
    assert done.code == 0
    evidence = done.result["details"]["reconciliation_metrics"]["quality_replay"]
    assert evidence["gates"][0]["passed"] is False
    assert evidence["warnings"] == ["Gate many did not pass (severity warning)."]
