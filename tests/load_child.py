"""A task's load process with injected ports: ``python -m tests.load_child BEHAVIOUR CHANNEL PARENT``.

Its tables are kept beside its ledger, so that the next process finds them. A behaviour other than ``obey`` spoils one
thing: what it says, how it ends, or how it takes a signal.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dpone.adapters.airflow.child import main
from dpone.adapters.runtime.compose import Composition
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from dpone.domain.ports import Swap
from dpone.domain.tables import Column, ReplicaLook, TableDefinition, TableIdentity, TargetRef

from .injected import Injected, MemoryPlatform, MemorySource


class KeptPlatform(MemoryPlatform):
    """Tables in a file, as an engine's folder keeps them: every process sees at once what another one did."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        with self._kept():
            return super().look(target)

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        with self._kept():
            super().create(database, name, definition)

    def swap(self, swap: Swap) -> None:
        with self._kept():
            super().swap(swap)

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        with self._kept():
            super().rename(replica, database, old, new)

    def drop(self, replica: str, database: str, name: str, identity: TableIdentity) -> bool:
        with self._kept():
            return super().drop(replica, database, name, identity)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        with self.file.open("a+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            held.seek(0)
            self.tables = pickle.loads(found) if (found := held.read()) else {}
            yield
            held.truncate(0)
            held.write(pickle.dumps(self.tables))


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
