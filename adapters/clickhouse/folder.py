"""The embedded engine's data folder: who holds its lock, and whether it can be used at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...domain.errors import EngineFailed, ErrorCode

_LOCK_FILE = "status"
_RESERVE_BYTES = 4 * 1024 * 1024
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds the lock; None where it cannot be seen (another container, another user)."""

    pid: int | None = None
    name: str | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "another process"
        return f"process {self.pid} ({self.name})" if self.name else f"process {self.pid}"


def prepare(folder: Path) -> None:
    """Create the folder and see that it can be written. Raises EngineFailed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise _unusable("is not a folder") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise storage_full() from None
        raise _unusable("cannot be created: " + os.strerror(error.errno or 0)) from None
    if "?" in str(folder):
        raise _unusable("has a question mark in its path, which the engine reads as options")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise _unusable("cannot be written by this user (or its file system is read-only)")


def is_full(folder: Path) -> bool:
    """Whether there is less space than the engine needs for its own small files.

    Measured: on a full disk the engine writes empty metadata files, reports success, and never opens the folder again.
    So nothing is created without this reserve.
    """
    try:
        space = os.statvfs(folder)
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < _RESERVE_BYTES


def is_written(folder: Path, metadata_path: str) -> bool:
    """Whether a table's or database's metadata file has content. ``metadata_path`` is as the engine tells it."""
    try:
        return (folder / metadata_path).stat().st_size > 0
    except OSError:
        return False


def storage_full() -> EngineFailed:
    return EngineFailed(
        ErrorCode.STORAGE_FULL,
        "The disk that holds the engine's folder is full.",
        next="Free some space, then repeat the same command.",
    )


def seen_holder(folder: Path) -> Holder | None:
    """Who holds the lock according to the kernel's list; None when nobody there does. Takes no lock itself."""
    try:
        status = (folder / _LOCK_FILE).stat()
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in locks.splitlines():
        fields = line.split()
        if place in fields and "->" not in fields:
            return _holder(fields[fields.index(place) - 1])
    return None


def locked_by(folder: Path) -> Holder | None:
    """As seen_holder, but certain: for after the engine failed to open (a probe could make another process fail)."""
    if holder := seen_holder(folder):
        return holder
    with contextlib.suppress(OSError), (folder / _LOCK_FILE).open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Holder()
    return None


def can_exchange(folder: Path) -> bool:
    """Whether the file system can swap two names at once, tried with two files. Raises OSError if the trial fails."""
    with tempfile.TemporaryDirectory(prefix="dpone-exchange-", dir=folder) as trial:
        first, second = Path(trial, "first"), Path(trial, "second")
        first.touch()
        second.touch()
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "renameat2"):
            return False
        if libc.renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
            return True
        code = ctypes.get_errno()
        if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            return False
        raise OSError(code, os.strerror(code))


def _holder(pid_text: str) -> Holder:
    pid = int(pid_text) if pid_text.isdigit() else 0
    if pid <= 0:
        return Holder()
    try:
        return Holder(pid, Path(f"/proc/{pid}/comm").read_text(errors="replace").strip())
    except OSError:
        return Holder(pid)


def _unusable(why: str) -> EngineFailed:
    return EngineFailed(
        ErrorCode.INTERNAL, f"The engine's folder {why}.", next="Point DPONE_HOME at a folder that can be written."
    )
