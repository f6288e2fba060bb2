"""Parsing a DAG: nothing of ours but the operator's module, no connection, no variable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .deployment import ROOT, Deployment

_READS = """# A file that says dag and airflow is parsed.
from airflow.sdk import BaseHook, Variable
{}
"""
_CALLS = """# A file that says dag and airflow is parsed.
from airflow.sdk import Asset
from dpone.adapters.airflow import DponeEvidenceSensor, dpone_dag
dag = {call}
"""
_REFUSED = {
    "not_a_flow": 'dpone_dag("{manifests}/good.batch.yaml")',
    "no_manifest": 'dpone_dag("{manifests}/missing.flow.yaml")',
    "unknown_outlet": 'dpone_dag("{manifests}/shop.flow.yaml", outlets={{"nobody": [Asset("a")]}})',
    "asks_for_nothing": 'DponeEvidenceSensor(task_id="guard")',
}
_SENTENCES = {
    "not_a_flow": "good.batch.yaml is not a flow",
    "no_manifest": "missing.flow.yaml: there is no such file",
    "unknown_outlet": "outlets names processes that the flow does not have: nobody",
    "asks_for_nothing": "Give either manifest or operation",
}


@pytest.fixture(scope="module")
def reports(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("parsing")
    (folder / "reads_a_variable.py").write_text(_READS.format("Variable.get('x')"))
    (folder / "reads_a_connection.py").write_text(_READS.format("BaseHook.get_connection('x')"))
    for name, call in _REFUSED.items():
        (folder / f"{name}.py").write_text(_CALLS.format(call=call.format(manifests=deployment.dags / "manifests")))
    files = [
        deployment.dags / "only_the_operator.py",
        deployment.dags / "loads.py",
        ROOT / "examples/airflow/durable_replay_embedded.py",
        folder / "reads_a_variable.py",
        folder / "reads_a_connection.py",
        *(folder / f"{name}.py" for name in _REFUSED),
    ]
    done = deployment.python("-m", "tests.integration.airflow.parsing", str(folder / "report"), *map(str, files))
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((folder / "report").read_text())
    return {file.stem: report for file, report in zip(files, found, strict=True)}


def test_the_operator_brings_its_own_module_and_no_other(reports: dict[str, dict[str, Any]]) -> None:
    report = reports["only_the_operator"]
    assert (report["dags"], report["import_errors"]) == (["only_the_operator"], {})
    assert report["ours"] == [
        "dpone",
        "dpone.adapters",
        "dpone.adapters.airflow",
        "dpone.adapters.airflow.links",
        "dpone.adapters.airflow.operator",
        "dpone.adapters.airflow.provider",  # by Airflow's own start, through the entry point
    ]
    assert report["heavy"] == []


def test_guards_and_flows_read_no_connection_and_load_no_engine_either(reports: dict[str, dict[str, Any]]) -> None:
    report = reports["loads"]
    assert report["import_errors"] == {}
    assert {"good", "shop", "siblings"} <= set(report["dags"])
    assert report["heavy"] == []


def test_the_example_is_a_dag(reports: dict[str, dict[str, Any]]) -> None:
    report = reports["durable_replay_embedded"]
    assert (report["dags"], report["import_errors"]) == (["durable_replay_embedded"], {})


@pytest.mark.parametrize("name", ["reads_a_variable", "reads_a_connection"])
def test_reading_while_parsing_would_have_been_seen(name: str, reports: dict[str, dict[str, Any]]) -> None:
    assert "ReadWhileParsing" in str(reports[name]["import_errors"])


@pytest.mark.parametrize("name", _REFUSED)
def test_a_dag_file_that_cannot_be_meant_says_why(name: str, reports: dict[str, dict[str, Any]]) -> None:
    assert _SENTENCES[name] in str(reports[name]["import_errors"])
