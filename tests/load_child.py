"""A task's load process with injected ports: ``python -m tests.load_child BEHAVIOUR CHANNEL PARENT``.

Its tables are kept beside its ledger, so that the next process finds them. A behaviour other than ``obey`` spoils one
thing: what it says, how it ends, or how it takes a signal.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from dpone.adapters.airflow.child import main
from dpone.adapters.runtime.compose import Composition
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from dpone.domain.tables import Column

from .injected import Injected, MemoryPlatform, MemorySource


class KeptPlatform(MemoryPlatform):
    """Tables in memory, written to a file at the end if they changed: who only looked overwrites nobody's."""

    def __init__(self, file: Path) -> None:
        super().__init__(tables=pickle.loads(file.read_bytes()) if file.exists() else {})
        self.file = file
        self.found = pickle.dumps(self.tables)

    def release(self) -> None:
        left = pickle.dumps(self.tables)
        if left != self.found:
            self.file.write_bytes(left)


def composed(settings: Settings, process: Process, behaviour: str) -> Composition:
    folder = settings.home
    folder.mkdir(parents=True, exist_ok=True)
    injected = Injected(folder, platform=KeptPlatform(folder / "tables"))  # type: ignore[arg-type, unused-ignore]
    if behaviour in ("ask", "leak"):
        reference = process.source.connection_ref
        connection = settings.connection(reference or "")
        (folder / "environ").write_bytes(Path("/proc/self/environ").read_bytes())
        (folder / "cmdline").write_bytes(Path("/proc/self/cmdline").read_bytes())
        if behaviour == "leak":
            print(f"a driver says: {connection.host} {connection.username}:{connection.password}", file=sys.stderr)
            print(f"postgresql://someone:{connection.password}@host/db", flush=True)
    (folder / "pid").write_text(str(os.getpid()))
    match behaviour:
        case "vanish":
            os.kill(os.getpid(), signal.SIGKILL)
        case "wait":
            time.sleep(60)
        case "ignore":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
    composition = injected(settings, process)
    if behaviour == "meet":
        return replace(composition, ports=replace(composition.ports, source=MeetingSource(folder)))
    return composition


class MeetingSource(MemorySource):
    """Is described only once both siblings have come so far: neither has begun its attempt."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def describe(self) -> tuple[Column, ...]:
        (self.folder / f"here-{os.getpid()}").touch()
        deadline = time.monotonic() + 20
        while len(list(self.folder.glob("here-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        return super().describe()


if __name__ == "__main__":
    chosen = sys.argv[1]
    if chosen == "babble":
        os.write(int(sys.argv[2]), b"\xff" * 64)
        os._exit(0)
    main(sys.argv[2:], lambda settings, process: composed(settings, process, chosen))
