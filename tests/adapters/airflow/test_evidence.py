"""What a guard answers: from the ledger's events alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpone
from dpone import DponeError, Outcome
from dpone.adapters.airflow.evidence import Wanted, ask
from dpone.adapters.runtime.compose import Composition
from dpone.adapters.runtime.execution import Interrupted
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process

from ...injected import Injected

EXAMPLE = Path(__file__).parents[3] / "examples/batch/durable-replay-full-refresh.batch.yaml"


class Shop:
    """Loads of one table, in memory, under one ledger."""

    def __init__(self, folder: Path) -> None:
        self.injected = Injected(folder)
        self.environ = {"DPONE_HOME": str(folder), "DPONE_LEDGER": self.injected.ledger_url}

    def load(self, run_id: str, manifest: Path = EXAMPLE) -> Outcome:
        return dpone.run(manifest, dag_id="shop", run_id=run_id, environ=self.environ, composer=self._composed)

    def _composed(self, settings: Settings, process: Process) -> Composition:
        return self.injected(settings, process)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_complete_load_is_evidence(shop: Shop) -> None:
    outcome = shop.load("one").require_passed()
    evidence = ask(Wanted(operation=outcome.operation_id), None, shop.environ).evidence
    assert evidence is not None
    assert (evidence.generation, evidence.core_digest) == (outcome.generation, outcome.core_digest)
    assert (evidence.dag_id, evidence.run_id, evidence.target) == ("shop", "one", "analytics.replay_records")


def test_a_table_that_a_later_run_replaced_is_none_unless_it_may_be(shop: Shop) -> None:
    first = shop.load("one").require_passed()
    shop.load("two").require_passed()
    wanted = Wanted(operation=first.operation_id)
    verdict = ask(wanted, None, shop.environ)
    assert (verdict.evidence, verdict.can_still_come) == (None, False)
    assert "no longer the live one" in verdict.why_not
    assert ask(wanted, None, shop.environ, require_live=False).evidence is not None


def test_a_failed_load_will_not_become_evidence_by_waiting(shop: Shop, tmp_path: Path) -> None:
    gated = tmp_path / "gated.batch.yaml"
    rule = "type: row_count_reconciliation\n      severity: error\n      tolerance: {mode: absolute, value: 0}"
    text = EXAMPLE.read_text()
    assert rule in text
    gated.write_text(text.replace(rule, "type: min_rows\n      rows: 1000"))
    outcome = shop.load("one", gated)
    assert not outcome.passed
    verdict = ask(Wanted(operation=outcome.operation_id), None, shop.environ)
    assert (verdict.evidence, verdict.can_still_come, verdict.operation) == (None, False, outcome.operation_id)


def test_a_load_that_was_interrupted_may_still_come(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*words: object) -> None:
        raise Interrupted("SIGTERM", 15)

    with monkeypatch.context() as broken:
        broken.setattr(shop.injected.platform, "swap", stopped)
        outcome = shop.load("one")
    assert outcome.exit_code == 143
    verdict = ask(Wanted(operation=outcome.operation_id), None, shop.environ)
    assert (verdict.evidence, verdict.can_still_come) == (None, True)
    shop.load("one").require_passed()
    assert ask(Wanted(operation=outcome.operation_id), None, shop.environ).evidence is not None


def test_a_load_that_the_ledger_does_not_know(shop: Shop) -> None:
    shop.load("one").require_passed()
    by_manifest = ask(Wanted(manifest=EXAMPLE, dag_id="shop", run_id="never"), None, shop.environ)
    assert (by_manifest.evidence, by_manifest.can_still_come) == (None, True)
    with pytest.raises(DponeError, match="no such operation"):
        ask(Wanted(operation="00000000"), None, shop.environ)
