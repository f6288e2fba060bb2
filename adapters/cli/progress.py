"""Progress on a terminal: rows, rate, elapsed. Nothing in a pipe, nothing in JSON."""

from __future__ import annotations

import sys
from typing import Any

from ...domain.steps import Stage, Step


class Quiet:
    """Shows nothing."""

    def step(self, step: Step) -> None:
        return None

    def rows(self, rows: int, source_bytes: int) -> None:
        return None

    def stop(self) -> None:
        return None


class Bar:
    """A live line on stderr while the source is read, and the name of the step otherwise."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TextColumn("{task.fields[rows]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: Any = self._progress.add_task("", rows="")
        self._progress.start()

    def step(self, step: Step) -> None:
        self._progress.update(self._task, description=step.sentence.partition(":")[0], rows="")
        if isinstance(step, Stage):
            self._progress.reset(self._task)

    def rows(self, rows: int, source_bytes: int) -> None:
        task = self._progress.tasks[0]
        rate = rows / task.elapsed if task.elapsed else 0
        shown = f"{rows:,} rows · {rate:,.0f} rows/s · {source_bytes / 1e6:,.1f} MB"
        self._progress.update(self._task, rows=shown)

    def stop(self) -> None:
        self._progress.stop()


def reporter(output: str) -> Quiet | Bar:
    """A bar for a person on a terminal, else silence."""
    return Bar() if output == "text" and sys.stderr.isatty() else Quiet()
