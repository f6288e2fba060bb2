"""``dpone.run`` and its outcome: the same as the command, as objects, without the command's weight."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import dpone
from dpone import Connection, DponeError, ErrorCode, Outcome
from dpone.adapters.runtime.compose import Composition
from dpone.adapters.runtime.execution import Interrupted
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process

from ...injected import ROWS, Injected

EXAMPLE = Path(__file__).parents[3] / "examples/batch/durable-replay-full-refresh.batch.yaml"


@pytest.fixture
def injected(tmp_path: Path) -> Injected:
    return Injected(tmp_path)


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    return {"DPONE_HOME": str(tmp_path / "home")}


def test_the_outcome_says_what_the_document_says(injected: Injected, environ: Mapping[str, str]) -> None:
    outcome = dpone.run(EXAMPLE, "source.records", dag_id="d", run_id="r", environ=environ, composer=injected)
    assert outcome.require_passed() is outcome
    assert (outcome.passed, outcome.exit_code, outcome.failure, outcome.replayed) == (True, 0, None, False)
    assert (outcome.extracted_rows, outcome.target_commit, outcome.governance) == (ROWS, "proven", "complete")
    evidence = outcome.document["result"]["details"]["reconciliation_metrics"]["quality_replay"]
    assert outcome.core_digest == evidence["core_digest"]
    assert outcome.generation == evidence["replayed_from"]["load_id"]
    assert outcome.operation_id == evidence["replayed_from"]["operation_id"]
    json.dumps(dict(outcome.document))


def test_calling_again_with_the_same_ids_continues(injected: Injected, environ: Mapping[str, str]) -> None:
    for attempt, replayed in ((1, False), (2, True)):
        outcome = dpone.run(EXAMPLE, dag_id="d", run_id="r", environ=environ, composer=injected)
        assert (outcome.attempt, outcome.replayed) == (attempt, replayed)
    assert injected.source.opens == 1


def test_the_ids_may_come_from_the_environment_that_was_given(injected: Injected, environ: Mapping[str, str]) -> None:
    named = {**environ, "DPONE_DAG_ID": "shop", "DPONE_RUN_ID": "one"}
    outcome = dpone.run(EXAMPLE, environ=named, composer=injected)
    assert (outcome.dag_id, outcome.run_id) == ("shop", "one")


def test_an_expected_ending_is_an_outcome_and_raised_only_when_asked() -> None:
    outcome = dpone.run("missing.batch.yaml", dag_id="d", run_id="r")
    assert outcome.failure is not None
    assert (outcome.exit_code, outcome.failure.code) == (2, ErrorCode.MANIFEST_INVALID)
    with pytest.raises(DponeError, match=r"missing\.batch\.yaml") as raised:
        outcome.require_passed()
    assert (raised.value.code, raised.value.exit_code) == (ErrorCode.MANIFEST_INVALID, 2)


class Vault:
    """A program's own provider."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def connection(self, reference: str) -> Connection | None:
        self.asked.append(reference)
        return Connection(reference, host="db.example", password="s3cret") if reference == "replay_source" else None


def test_a_programs_provider_is_asked_after_the_environment(injected: Injected, environ: Mapping[str, str]) -> None:
    vault, hosts = Vault(), []

    def composer(settings: Settings, process: Process) -> Composition:
        hosts.append(settings.connection("replay_source").host)
        return injected(settings, process)

    dpone.run(EXAMPLE, run_id="1", environ=environ, provider=vault, composer=composer)
    from_environment = {**environ, "DPONE_CONN_REPLAY_SOURCE_HOST": "env.example"}
    dpone.run(EXAMPLE, run_id="2", environ=from_environment, provider=vault, composer=composer)
    assert hosts == ["db.example", "env.example"]
    assert vault.asked == ["replay_source"]


def test_a_programs_own_signal_ends_in_an_outcome(injected: Injected, environ: Mapping[str, str]) -> None:
    def composer(settings: Settings, process: Process) -> Composition:
        raise Interrupted("SIGTERM", 15)

    outcome = dpone.run(EXAMPLE, dag_id="d", run_id="r", environ=environ, composer=composer)
    assert outcome.failure is not None
    assert (outcome.exit_code, outcome.failure.code) == (143, ErrorCode.EVIDENCE_INCOMPLETE)
    assert dpone.run(EXAMPLE, dag_id="d", run_id="r", environ=environ, composer=injected).passed


FIELDS = (
    "passed", "exit_code", "failure", "process", "dag_id", "run_id", "operation_id", "attempt", "replayed",
    "target_commit", "governance", "core_digest", "generation", "extracted_rows", "inserted_rows", "final_rows",
    "duration_seconds", "warnings", "document",
)  # fmt: skip


def test_the_outcomes_fields_are_stable() -> None:
    """Adding one at the end is free; anything else breaks programs."""
    assert tuple(field.name for field in dataclasses.fields(Outcome))[: len(FIELDS)] == FIELDS


def test_importing_dpone_imports_nothing_heavy() -> None:
    program = (
        "import sys; before = set(sys.modules); import dpone; from dpone import Outcome, run, Connection, ErrorCode; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    heavy = {
        "chdb",
        "pyarrow",
        "numpy",
        "eventsourcing",
        "marshmallow",
        "ruamel",
        "rich",
        "click",
        "airflow",
    }
    assert set(said.split()) & heavy == set()
    assert "dpone" in said.split()


def test_what_dpone_does_not_offer_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="load_everything"):
        dpone.load_everything  # noqa: B018
