"""Fixtures that more than one kind of test uses."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.sandbox import Sandbox, rows_of

NIGHTLY: Final = ("tests/faults/test_network.py", "tests/faults/test_campaign.py::test_half_a_minute_of_faults[8]")
"""Minutes of waiting for servers, and more of the same: run with DPONE_TEST_NIGHTLY=1, or by naming the file."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the nightly files out of a whole run."""
    if os.environ.get("DPONE_TEST_NIGHTLY") or any(".py" in word for word in config.args):
        return
    left_out = [item for item in items if item.nodeid.startswith(NIGHTLY)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


class FailuresAtOnce:
    """Tell each failure when it happens: a run that is ended from outside never prints its summary."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line("")
            self._terminal.write_line(f"{report.nodeid} ({report.when}): {report.longreprtext[-1500:]}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Only the process that prints has a terminal that is read: those it hands tests to report to it."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(terminal))


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
