"""The installed program ``dpone``: takes care of signals first, then loads the command line."""

from __future__ import annotations

import sys

from . import early


def main() -> None:
    """Run ``dpone`` and leave the process with its exit code."""
    early.note_signals()
    # Where it is installed, pyarrow imports it for the first number it is given: 0.3 s of CPU that nothing here needs.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    from .entry import main as run

    run()
