"""Waiting for what another process writes, within a bound."""

from __future__ import annotations

import time
from pathlib import Path


def await_line(record: Path, line: str, seconds: float = 30) -> None:
    """Return once the record holds the line. Raises AssertionError when it never does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if record.exists() and line in record.read_text().splitlines():
            return
        time.sleep(0.02)
    raise AssertionError(f"{line} was never reached")
