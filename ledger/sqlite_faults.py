"""What SQLite's and the operating system's errors mean for a ledger: one sentence each, no message passed on."""

from __future__ import annotations

import errno
import sqlite3

from ..domain.errors import ErrorCode, LedgerFailed

TAKEN = "this version of the stream is taken"
"""What the store's own guard says to the loser of a race."""

_CONFLICTS = frozenset({sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE})
_READS = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REPEAT = "Repeat the same command."


def is_conflict(error: Exception) -> bool:
    """Whether an insert met a (stream, version) that is taken."""
    return isinstance(error, sqlite3.IntegrityError) and (_code(error) in _CONFLICTS or str(error) == TAKEN)


def is_lost_reply(error: sqlite3.Error) -> bool:
    """Whether a commit that failed so may nevertheless have reached the disk.

    A full disk and a lock are certain: the commit's last frame was not written. An input/output error is not.
    """
    return _code(error) & 0xFF == sqlite3.SQLITE_IOERR


def explain(error: Exception, name: str) -> LedgerFailed:
    """The fault as the product tells it. ``name`` is the file's base name."""
    if isinstance(error, sqlite3.Error):
        return _explain_sqlite(_code(error), name)
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return full(name)
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return read_only(name)
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return _not_opened(name)
    return locked(name)


def _explain_sqlite(code: int, name: str) -> LedgerFailed:
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return replaced(name)
    if code in _READS:
        return _not_opened(name)
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return locked(name)
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return full(name)
        case sqlite3.SQLITE_READONLY:
            return read_only(name)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return _not_opened(name)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(name)
        case sqlite3.SQLITE_CONSTRAINT:
            return _guarded(name)
        case _:
            return wrong_schema(name, "it does not have a ledger's tables")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR


def locked(name: str) -> LedgerFailed:
    """The bounded wait for a lock ended."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} is locked by another process, and stayed so for as long as we wait.",
        safe="Nothing was appended and nothing was lost.",
        next=_REPEAT,
    )


def full(name: str) -> LedgerFailed:
    """No room, or a disk that fails to write."""
    return LedgerFailed(
        ErrorCode.STORAGE_FULL,
        f"The disk of the ledger {name} is full or fails to write.",
        safe="What is in the ledger stays as it was.",
        next="Make room on that disk, then repeat the same command.",
    )


def read_only(name: str) -> LedgerFailed:
    """The file or its folder may not be written."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} is read-only for this user, or its folder or file system is.",
        safe="Nothing was appended.",
        next="Make the file and its folder writable, then repeat the same command.",
    )


def damaged(name: str) -> LedgerFailed:
    """Not a database, or one whose pages are broken."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} is damaged, or is not a ledger at all.",
        safe="Nothing was written to it.",
        next="Restore the ledger from a backup, then run: dpone audit verify",
    )


def wrong_schema(name: str, why: str) -> LedgerFailed:
    """A database, but no ledger."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The file {name} is not a dpone ledger: {why}.",
        safe="Nothing was written to it.",
        next="Check --ledger and DPONE_LEDGER, or restore the ledger from a backup.",
    )


def gone(name: str) -> LedgerFailed:
    """The file vanished while it was open."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} was there when it was opened, and is gone or out of reach now.",
        safe="No new ledger was started in its place.",
        next="Restore the ledger's file, then repeat the same command.",
    )


def replaced(name: str) -> LedgerFailed:
    """Another file took its place while it was open."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} was replaced by another one while it was open.",
        safe="Nothing was appended to the file that is there now.",
        next="Put the original ledger back, then repeat the same command.",
    )


def _guarded(name: str) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} refused a change that no ledger may take: it is sealed, or its end was cut off.",
        safe="Nothing was appended.",
        next="dpone audit verify",
    )


def _not_opened(name: str) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} cannot be opened or read by this user.",
        safe="Nothing was changed.",
        next="Check that the file and its folder are readable and writable, then repeat the same command.",
    )
