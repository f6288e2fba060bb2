"""The installed program ``dpone``: takes care of signals first, then loads the command line."""

from __future__ import annotations

from .. import engine_memory, unneeded
from . import early


def begin() -> None:
    """What the program does to its own process before anything else; a library must not."""
    early.note_signals()
    unneeded.keep_out()
    engine_memory.give_back_soon()


def main() -> None:
    """Run ``dpone`` and leave the process with its exit code."""
    begin()
    from .entry import main as run

    run()
