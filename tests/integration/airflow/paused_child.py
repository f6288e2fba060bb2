"""A load's process that waits, in the middle of reading its source, until a file says go on. Real engine, own home."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dpone.adapters.airflow.child import main
from dpone.adapters.runtime.compose import Composition, compose
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from dpone.domain.ports import Progress, Source, SourceReading
from dpone.domain.tables import Column, Metrics

WAIT_SECONDS = 600  # the test says go long before


@dataclass(frozen=True, slots=True)
class PausedSource:
    """Says who reads, then waits."""

    source: Source
    said: Path
    go: Path

    def describe(self) -> tuple[Column, ...]:
        return self.source.describe()

    @contextmanager
    def read(self, columns: Sequence[Column], metrics: Metrics, progress: Progress) -> Iterator[SourceReading]:
        with self.source.read(columns, metrics, progress) as reading:
            draft = self.said.with_suffix(".new")
            draft.write_text(json.dumps({"load": os.getpid(), "task": os.getppid()}))
            draft.replace(self.said)
            deadline = time.monotonic() + WAIT_SECONDS
            while not self.go.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield reading


def composed(settings: Settings, process: Process) -> Composition:
    home = settings.home / process.name
    composition = compose(replace(settings, home=home), process)
    paused = PausedSource(composition.ports.source, home.with_suffix(".reading"), home.with_suffix(".go"))
    return replace(composition, ports=replace(composition.ports, source=paused))


if __name__ == "__main__":
    main(sys.argv[1:], composed)
