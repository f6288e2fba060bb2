"""``python -m tests.faults.starving RECORD ACTION WORD…``: the recording composition, short of something.

ACTION: ``fork@POINT``: from there on no process and no thread can be started (root is exempt from that limit: see
``unprivileged`` for how to be no longer exempt). ``memory:MIB``: the reader's worker may use so much address space.
``clock:SECONDS``: this process's wall clock is off by so much. Each may be followed by ``,kill@POINT``.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dpone.adapters.cli.entry import main
from dpone.adapters.cli.program import begin
from dpone.adapters.reader import ProcessReader
from dpone.adapters.runtime.compose import Composition, SystemClock
from dpone.adapters.runtime.provisioning import embedded_folder
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from tests.crash.composition import Points, composer

_SOMEBODY = 54_321


def unprivileged() -> Sequence[str]:
    """Words before a command that take from root what exempts it from limits; its files stay its own."""
    if os.geteuid() != 0:
        return ()
    found = str(shutil.which("setpriv"))
    return (found, "--bounding-set=-sys_resource,-sys_admin")


class StarvingPoints(Points):
    """Lets no process be started from a point on."""

    def reach(self, point: str) -> None:
        Points.reach(self, point)
        if self.action == "fork" and point == self.at:
            if os.geteuid() == 0:
                os.setresuid(_SOMEBODY, 0, 0)  # the limit looks at the real user, and never at root
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


@dataclass(frozen=True, slots=True)
class WrongClock(SystemClock):
    """A wall clock that is off; durations are right."""

    seconds: float

    def now(self) -> str:
        shown = datetime.now(UTC) + timedelta(seconds=self.seconds)
        return shown.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _starved(composed: Callable[[Settings, Process], Composition], what: str, amount: str) -> Any:
    def starving(settings: Settings, process: Process) -> Composition:
        whole = composed(settings, process)
        recorder: Any = whole.ports.reader
        if what == "memory":
            command = (sys.executable, "-P", "-m", "tests.faults.small_worker", amount)
            reader = ProcessReader(embedded_folder(settings.home) / "data", command=command)
            whole.ports = replace(whole.ports, reader=replace(recorder, inner=reader))
        if what == "clock":
            whole.ports = replace(whole.ports, clock=WrongClock(float(amount)))
        return whole

    return starving


def _main(record: str, action: str, words: list[str]) -> None:
    first, _, second = action.partition(",")
    what, _, amount = first.partition(":")
    verb, _, point = (second or first).partition("@")
    begin()
    main(words, _starved(composer(StarvingPoints(Path(record), verb, point)), what, amount))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
