"""Where a canary could be: what a process says, what its children are given, what is left on the disk."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_PAUSE_SECONDS = 0.002


@dataclass(slots=True)
class Seen:
    """Arguments of a process and its descendants, and the environments of the descendants, while they ran."""

    arguments: set[bytes] = field(default_factory=set)
    environments: set[bytes] = field(default_factory=set)

    @property
    def workers(self) -> int:
        """How many different workers' command lines were seen."""
        return sum(b"dpone.adapters.reader" in line for line in self.arguments)


@contextlib.contextmanager
def watched(process: subprocess.Popen[str]) -> Iterator[Seen]:
    """Look at a process and all its descendants again and again until the end of the block."""
    seen, over, broken = Seen(), threading.Event(), []

    def look() -> None:
        try:
            while not over.is_set():
                _look(process.pid, seen)
                time.sleep(_PAUSE_SECONDS)
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(10)
    assert not broken, broken  # who stopped looking saw nothing


def _look(parent: int, seen: Seen) -> None:
    own = _read(Path(f"/proc/{parent}/cmdline"))
    seen.arguments.add(own)
    for child in _children(parent):
        arguments = _read(Path(f"/proc/{child}/cmdline"))
        seen.arguments.add(arguments)
        if arguments not in (own, b""):  # between fork and exec a child still shows its parent's memory
            seen.environments.add(_read(Path(f"/proc/{child}/environ")))
        _look(child, seen)


def _children(parent: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile; others are looked at
        for listed in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(number) for number in _read(listed).split()]
    return found


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


def files_with(folder: Path, canary: str, but: Path | None = None) -> list[str]:
    """The files below ``folder``, by content or by name, that hold the canary as UTF-8; ``but`` is left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        if but is not None and path.is_relative_to(but):
            continue
        if canary in path.name or (path.is_file() and canary.encode() in path.read_bytes()):
            found.append(str(path.relative_to(folder)))
    return found
