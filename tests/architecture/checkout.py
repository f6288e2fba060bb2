"""The checkout's own files, as the tests of this folder look at them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("domain", "ledger", "adapters")


def modules() -> Iterator[Path]:
    """Every module of the three rooms."""
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file that belongs to the project: what git knows, or would be asked to."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            try:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
