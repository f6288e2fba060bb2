"""Fixtures that more than one kind of test uses."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.sandbox import Sandbox, rows_of

NIGHTLY: Final = ("tests/faults/test_network.py",)
"""Minutes of waiting for servers: run with DPONE_TEST_NIGHTLY=1, or by naming the file."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the nightly files out of a whole run."""
    if os.environ.get("DPONE_TEST_NIGHTLY") or any(".py" in word for word in config.args):
        return
    left_out = [item for item in items if item.nodeid.split("::")[0] in NIGHTLY]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A home, a source of 300 rows and a manifest, nothing of which was run yet."""
    made = Sandbox(tmp_path)
    made.write_rows(rows_of(1))
    made.write_manifest()
    return made


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Every descriptor that is opened from here on is 1,024 or higher, as in a program that serves many."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(4096, before[1])), before[1]))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] < 1024:
        held.append(os.dup(held[0]))
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
