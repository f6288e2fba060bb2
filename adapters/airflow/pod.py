"""What a container must allow for loads to run, end and be continued in it: found out by trying, inside the container.

The check list of ``dpone doctor --worker-pod``. It holds for any container; it asks no Kubernetes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...domain.errors import DponeError
from ...domain.limits import STOP_SECONDS
from ..runtime.diagnosing import Finding
from ..runtime.settings import Settings

GRACE_VARIABLE: Final = "DPONE_POD_GRACE_SECONDS"
GRACE_SECONDS_MIN: Final = 10
MEMORY_BYTES_NEEDED: Final = 1024**3
"""A load's peak is some 550 MiB whatever the table's size, its reader's 200 more; Airflow's task itself about 200."""
PROCESSES_NEEDED: Final = 64
"""The engine starts threads, and a container counts those as processes."""
_CGROUP: Final = Path("/sys/fs/cgroup")
_PROBE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Pod:
    """Where to look: the settings of the run, and the control group's folder, which a test replaces."""

    settings: Settings
    cgroup: Path = field(default=_CGROUP)

    def findings(self) -> tuple[Finding, ...]:
        """All checks of the list. Raises nothing."""
        checks: tuple[Callable[[], Iterator[Finding]], ...] = (
            self._grace,
            self._orphans,
            self._processes,
            self._memory,
            self._ledger,
        )
        return tuple(finding for check in checks for finding in check())

    def _grace(self) -> Iterator[Finding]:
        """No container can see its own grace period, so the deployment says it in a variable."""
        said = self.settings.environ.get(GRACE_VARIABLE, "")
        fix = f"Set terminationGracePeriodSeconds to 30 and {GRACE_VARIABLE}=30 in the pod's template."
        if not said.isdecimal():
            text = "a container cannot see its grace period, and the deployment does not say it"
            yield Finding("grace", "warning", text, fix)
        elif int(said) < GRACE_SECONDS_MIN:
            text = f"{said} s: a load needs up to {STOP_SECONDS:.0f} s to end, and Airflow some to report it"
            yield Finding("grace", "problem", text, fix)
        else:
            yield Finding("grace", "ok", f"{said} s, as the deployment says")

    def _orphans(self) -> Iterator[Finding]:
        """A load must die with a task that is killed, and the container's first process must reap it."""
        try:
            state = _orphan_state()
        except (OSError, ValueError, subprocess.SubprocessError):
            fix = "Allow this user to start processes in sessions of their own."
            yield Finding("orphans", "problem", "A process of its own session could not be started.", fix)
            return
        match state:
            case None:
                yield Finding("orphans", "ok", "a load dies with its task, and is reaped")
            case "Z":
                fix = "Start the container with an init (Airflow's own image has one), or share the process namespace."
                yield Finding("orphans", "warning", "the container's first process does not reap orphans", fix)
            case _:
                fix = "Let the security profile allow prctl(PR_SET_PDEATHSIG)."
                yield Finding("orphans", "problem", "A process outlived the one that started it.", fix)

    def _processes(self) -> Iterator[Finding]:
        limit, used = _number(self.cgroup / "pids.max"), _number(self.cgroup / "pids.current") or 0
        if limit is not None and limit - used < PROCESSES_NEEDED:
            text = f"{limit - used} more processes and threads are allowed; a load needs {PROCESSES_NEEDED}"
            yield Finding("processes", "problem", text, "Raise the pod's process limit (podPidsLimit).")
        else:
            room = "no limit of its own" if limit is None else f"{limit - used} more are allowed"
            yield Finding("processes", "ok", room)

    def _memory(self) -> Iterator[Finding]:
        limit = _number(self.cgroup / "memory.max")
        if limit is not None and limit < MEMORY_BYTES_NEEDED:
            needed = MEMORY_BYTES_NEEDED / 1024**2
            text = f"the limit is {limit / 1024**2:,.0f} MiB; a load and its task need {needed:,.0f}"
            yield Finding("memory", "problem", text, "Raise resources.limits.memory of the pod.")
        else:
            room = "no limit of its own" if limit is None else f"the limit is {limit / 1024**2:,.0f} MiB"
            yield Finding("memory", "ok", room)

    def _ledger(self) -> Iterator[Finding]:
        if self.settings.ledger_url.startswith("sqlite:"):
            text = "a file in this container: the next pod would not know what this one did"
            fix = "Set DPONE_LEDGER: postgresql://…, keeper://… or keepermap://…"
            yield Finding("shared ledger", "problem", text, fix)
            return
        from ...ledger.store import open_ledger
        from ..connections.sql import connect_by

        try:
            with open_ledger(self.settings.ledger_url, create=False, connect=connect_by(self.settings)) as ledger:
                events = ledger.position()
        except DponeError as error:
            yield Finding("shared ledger", "problem", error.what, error.next)
            return
        yield Finding("shared ledger", "ok", f"{events:,} events, reached from here")


_ORPHAN = """
import os, sys, time
from dpone.adapters.reader.child import die_with
die_with(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(60)
"""
_PARENT = """
import os, subprocess, sys, time
started = subprocess.Popen([sys.executable, "-P", "-c", sys.argv[1], str(os.getpid())], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, start_new_session=True)
print(started.stdout.readline().decode().strip(), flush=True)
os._exit(0)
"""


def _orphan_state() -> str | None:
    """The state of a process whose parent has ended: None when it is gone, as it should be."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PARENT, _ORPHAN],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PROBE_SECONDS,
        check=True,
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 2
    while (state := _state(pid)) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    if state not in (None, "Z"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return state


def _state(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _number(file: Path) -> int | None:
    """A limit of the control group; None where there is none, or none that can be read."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
