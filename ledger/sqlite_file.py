"""The ledger's file and the connections to it: it must exist, and stay the same file while it is open."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from urllib.parse import quote

from ..domain.errors import ErrorCode, LedgerFailed, LedgerMissing
from .sqlite_faults import explain, gone, replaced


@dataclass(frozen=True, slots=True)
class Place:
    """The file that was opened: its path, and the device and inode by which it is known again."""

    path: Path
    text: str
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Place:
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise LedgerMissing(
                ErrorCode.LEDGER_UNREACHABLE,
                f"There is no ledger file {path.name}.",
                safe="Nothing was created or changed: an existing ledger is never replaced by a new, empty one.",
                next="Check --ledger, DPONE_LEDGER and DPONE_HOME, or restore the file from a backup.",
            ) from error
        except OSError as error:
            raise explain(error, path.name) from error
        if not path.is_file():
            raise LedgerFailed(ErrorCode.LEDGER_UNREACHABLE, f"{path.name} is not a file.", next="Check --ledger.")
        return cls(path, str(path), found.st_dev, found.st_ino)

    def check(self) -> None:
        """Raise when the file is gone or another one stands in its place."""
        try:
            found = os.stat(self.text)  # noqa: PTH116 - done twice an append, and a Path costs three times as much
        except OSError as error:
            raise gone(self.path.name) from error
        if (found.st_ino, found.st_dev) != (self.inode, self.device):
            raise replaced(self.path.name)


class Connections:
    """Connections to a file that must exist, used again until one sees an error; one writer at a time.

    Plainer than the library's pool, whose bookkeeping takes a tenth of an append.
    """

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
        self._wait_seconds = wait_seconds
        self._free: list[sqlite3.Connection] = []
        self._writing = Lock()
        self._closed = False

    def take(self, *, write: bool) -> sqlite3.Connection:
        """A connection for one transaction. Raises sqlite3.Error, and TimeoutError when another thread writes on."""
        if write and not self._writing.acquire(timeout=self._wait_seconds):
            raise TimeoutError
        try:
            return self._free.pop() if self._free else self._open()
        except IndexError:
            return self._open()
        except BaseException:
            if write:
                self._writing.release()
            raise

    def give(self, connection: sqlite3.Connection, *, write: bool, reuse: bool) -> None:
        """Take a connection back, or roll back whatever it had begun and end it."""
        if reuse and not self._closed:
            self._free.append(connection)
        else:
            # Closing alone is not enough: while a cursor is alive, SQLite keeps the transaction, and its lock, open.
            with suppress(sqlite3.Error):
                connection.rollback()
            with suppress(sqlite3.Error):
                connection.close()
        if write:
            self._writing.release()

    def close(self) -> None:
        self._closed = True
        while self._free:
            self._free.pop().close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._uri, uri=True, check_same_thread=False, isolation_level=None, timeout=self._wait_seconds
        )
        try:
            connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error:
            connection.close()
            raise
        connection.row_factory = sqlite3.Row
        # A damaged text must arrive here to be found and named, instead of failing inside the driver.
        connection.text_factory = _any_text
        return connection


def _any_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")
