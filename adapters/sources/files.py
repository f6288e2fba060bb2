"""A file that is opened once, told apart from every other file, and noticed when it changes meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from ...domain.errors import SourceFailed
from .refusals import changed, shown, too_large, unreadable

Signature = tuple[int, int, int, int, int]


def _signature(status: os.stat_result) -> Signature:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(slots=True)
class OpenedFile:
    """A regular file, open (``descriptor`` is closed on leaving the context) or only looked at."""

    path: Path
    descriptor: int | None
    status: os.stat_result

    @classmethod
    def open(cls, path: Path, max_bytes: int) -> OpenedFile:
        """Open for reading. Raises SourceFailed: missing, not a regular file, not allowed, empty, too large."""
        descriptor = _descriptor(path)
        opened = cls(path, descriptor, os.fstat(descriptor))
        try:
            opened._admit(max_bytes)
        except BaseException:
            os.close(descriptor)
            raise
        return opened

    @classmethod
    def look(cls, path: Path, max_bytes: int) -> OpenedFile:
        """The same checks without a descriptor: closing one would drop the locks that SQLite holds on the file."""
        with _explained(path):
            seen = cls(path, None, os.stat(path))  # noqa: PTH116 (the same call as fstat)
        seen._admit(max_bytes)
        return seen

    def _admit(self, max_bytes: int) -> None:
        name = shown(self.path.name)
        if stat.S_ISDIR(self.status.st_mode):
            raise unreadable(f"{name} is a directory, not a file.", "Name the file in source.path.")
        if not stat.S_ISREG(self.status.st_mode):
            raise unreadable(f"{name} is a pipe, socket or device.", "Write its content to a file and name that.")
        if self.status.st_size == 0:
            raise unreadable(f"{name} is empty: it does not even name columns.", "Check what should have written it.")
        if self.status.st_size > max_bytes:
            raise too_large(self.path.name, max_bytes, unpacked=False)

    @property
    def size(self) -> int:
        """Bytes on disk when it was opened."""
        return self.status.st_size

    def read_at(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset``. Raises SourceFailed when the disk fails."""
        try:
            return os.pread(self._open_descriptor(), count, offset)
        except OSError as error:
            raise self.failed(error.errno or 0) from None

    def failed(self, number: int) -> SourceFailed:
        """The system could not read it, for the reason of this number (``errno``)."""
        what = f"Reading {shown(self.path.name)} failed: {os.strerror(number)}."
        return unreadable(what, "Check the disk and this machine's limits, then repeat the command.")

    def unsound(self, kind: str, error: Exception) -> SourceFailed:
        """What a library ran into when it read this file as ``kind``: the file's own fault, or the system's.

        Arrow says both with an OSError: only what the system said has a number.
        """
        if isinstance(error, OSError) and error.errno:
            return self.failed(error.errno)
        what = f"{shown(self.path.name)} is not a complete, sound {kind}."
        return unreadable(what, "Get a complete copy of the file, then repeat the command.")

    def reopened(self) -> str:
        """A path to this very file, whatever its name leads to by now, for a library that opens files itself.

        Reads through Python would give it a copy of everything, in memory that is not given back.
        """
        return f"/proc/self/fd/{self._open_descriptor()}"

    def _open_descriptor(self) -> int:
        if self.descriptor is None:
            raise RuntimeError("the file was only looked at")
        return self.descriptor

    def verify(self) -> None:
        """Raise DPONE_SOURCE_CHANGED unless descriptor and path still show the file as it was opened."""
        expected = _signature(self.status)
        if self.descriptor is not None and _signature(os.fstat(self.descriptor)) != expected:
            raise changed(self.path.name)
        if self._now() != expected:
            raise changed(self.path.name)

    def verify_same(self) -> None:
        """Raise DPONE_SOURCE_CHANGED when the path shows another file, whatever was written to this one."""
        if self._now()[:2] != _signature(self.status)[:2]:
            raise changed(self.path.name)

    def _now(self) -> Signature:
        try:
            return _signature(os.stat(self.path))  # noqa: PTH116 (the same call as fstat)
        except OSError:
            raise changed(self.path.name) from None

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """Name without folder, bytes, and time of the last write in UTC (RFC 3339, microseconds)."""
        written = datetime.fromtimestamp(self.status.st_mtime_ns // 1_000 / 1_000_000, tz=UTC)
        return {
            "name": self.path.name,
            "bytes": self.size,
            "modified": written.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


def _descriptor(path: Path) -> int:
    with _explained(path):
        # Without O_NONBLOCK the opening of a pipe that nobody writes to would never return.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    name = shown(path.name)
    try:
        yield
    except FileNotFoundError:
        raise unreadable(f"{name} does not exist.", "Check source.path; it is relative to the manifest.") from None
    except PermissionError:
        raise unreadable(f"{name} may not be read by this user.", "Grant read permission on it, then repeat.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise unreadable(f"{name} cannot be opened: {reason}.", "Check source.path.") from None
