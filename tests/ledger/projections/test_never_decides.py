"""The import contract that keeps projections out of decisions holds, and would not if one were read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.sandbox import ROOT

CONTRACT = "Projections are never read to decide"


def _linted(folder: Path) -> str:
    """What the import linter says of a checkout."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return " ".join(done.stdout.split())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the three rooms."""
    for room in ("domain", "ledger", "adapters"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "src" / "dpone", tmp_path / "src" / "dpone", symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_no_decision_reads_a_projection(checkout: Path) -> None:
    assert f"{CONTRACT} KEPT" in _linted(checkout)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("adapters/runtime/lookup.py", "from ...ledger.projections.target import open_target"),
        ("ledger/store.py", "from .projections.tables import TABLES"),
    ],
)
def test_the_contract_sees_an_import(checkout: Path, module: str, line: str) -> None:
    with (checkout / module).open("a") as file:
        file.write(f"\n\ndef later() -> None:\n    {line}\n")
    assert f"{CONTRACT} BROKEN" in _linted(checkout)
