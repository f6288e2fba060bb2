"""Fixtures that more than one kind of test uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.sandbox import Sandbox, rows_of


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A home, a source of 300 rows and a manifest, nothing of which was run yet."""
    made = Sandbox(tmp_path)
    made.write_rows(rows_of(1))
    made.write_manifest()
    return made
