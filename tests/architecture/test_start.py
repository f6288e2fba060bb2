"""The command line starts without what it does not need: typed help is answered before anything heavy is imported."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from .checkout import ROOT

HEAVY = frozenset({"chdb", "eventsourcing", "marshmallow", "numpy", "pandas", "psycopg", "pyarrow", "rich", "ruamel"})
_MODULE = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s+([\w.]+)$", re.MULTILINE)


def imported(*words: str) -> set[str]:
    """The top-level packages that ``dpone`` with these words imports."""
    program = "import sys; from dpone.adapters.cli.entry import main; main(sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return {name.partition(".")[0] for name in _MODULE.findall(ended.stderr)}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["no-such-command"]], ids=" ".join)
def test_what_needs_nothing_heavy_imports_nothing_heavy(words: list[str]) -> None:
    found = imported(*words)
    assert "click" in found  # else nothing was measured
    assert found & HEAVY == set()


def test_the_measurement_sees_what_is_imported() -> None:
    assert "ruamel" in imported("validate", str(ROOT / "examples" / "batch" / "flights.batch.yaml"))


def test_validating_a_manifest_imports_no_engine_no_driver_and_no_ledger() -> None:
    found = imported("validate", str(ROOT / "examples" / "batch" / "flights.batch.yaml"))
    assert "ruamel" in found
    assert found & {"chdb", "pyarrow", "pandas", "numpy", "psycopg", "clickhouse_driver", "eventsourcing"} == set()
