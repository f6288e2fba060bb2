"""Every command that the pages show is typed, in the order of the page, and does what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import ROOT, Type, actions, check_session, missing, run

ON_A_CLUSTER = "cluster.md"  # it has a test of its own, which starts the servers
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if page.is_file() and page.name != ON_A_CLUSTER and any(isinstance(action, Type) for action in actions(page))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_commands_do_what_it_says(page: Path, tmp_path: Path) -> None:
    check_session(run(page, tmp_path))


def test_there_are_pages_to_run() -> None:
    assert {"first-load.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize(
    ("promised", "output", "absent"),
    [
        (("a … c",), "x\na  b c\n", None),
        (("a", "b"), "b\na\n", "b"),
        (("a",), "", "a"),
        (("rows: 1",), "rows: 2", "rows: 1"),
    ],
)
def test_the_comparison_can_fail(promised: tuple[str, ...], output: str, absent: str | None) -> None:
    assert missing(promised, output) == absent
