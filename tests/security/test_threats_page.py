"""Each line of the threats page names a test that exists, and each file of tests here is named by a line."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explanation/threats.md"


def test_every_line_of_the_table_names_a_test_that_exists() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(lines) > 30
    for line in lines:
        named = re.search(r"`(tests/[a-z_/]+\.py)::(test_[a-z0-9_]+)` \|$", line)
        assert named is not None, line
        source = (ROOT / named[1]).read_text()
        assert re.search(rf"^    ?   ?def {named[2]}\(|^def {named[2]}\(", source, re.MULTILINE), line


def test_every_file_of_this_folder_is_named_by_a_line() -> None:
    """What is tried here is told there."""
    page = PAGE.read_text()
    apart = {"test_threats_page.py", "test_rotation.py"}
    for path in Path(__file__).parent.glob("test_*.py"):
        assert path.name in apart or f"tests/security/{path.name}::" in page, path.name
