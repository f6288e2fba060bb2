"""What PostgreSQL's errors mean for a ledger: one sentence each. The server's own words quote values and endpoints, so
they are looked at where nothing else tells, and never passed on."""

from __future__ import annotations

from typing import Final

import psycopg

from ..domain.errors import ErrorCode, LedgerFailed, LedgerMissing

SEALED: Final = "DP001"
OUT_OF_ORDER: Final = "DP002"
OTHER_IDENTITY: Final = "DP003"
TOUCHED: Final = "DP004"
"""SQLSTATEs that the store's own functions and triggers raise."""

TAKEN: Final = "this version of the stream is taken"
_UNIQUE: Final = "23505"
_TRANSIENT: Final = ("55P03", "57014", "40001", "40P01", "25P03", "25P04")
"""Lock or statement timed out, serialisation, deadlock, transaction timed out: certainly rolled back."""
_ENDED: Final = ("08", "57P01", "57P02", "57P03", "57P05")
_ABSENT: Final = ("42P01", "3F000", "42883", "42703")
_DENIED: Final = ("42501", "28000", "28P01")
_REPEAT: Final = "Repeat the same command."


def is_conflict(error: psycopg.Error) -> bool:
    """Whether an insert met a (stream, version) that is taken."""
    return error.sqlstate == _UNIQUE


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection ended with the server's answer still owed."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_ENDED)


def explain(error: psycopg.Error, name: str) -> LedgerFailed:
    """The fault of an open connection, as the product tells it."""
    state = error.sqlstate or ""
    if is_lost(error):
        return unreachable(name)
    if state in _TRANSIENT:
        return locked(name)
    if state in _DENIED:
        return denied(name)
    if state in _ABSENT:
        return wrong_schema(name, "its tables or functions are not those of a ledger")
    if state.startswith("53") or state == "58030":
        return full(name)
    if state in ("25006", "57P04"):
        return read_only(name)
    if state == SEALED:
        return sealed(name)
    if state == OTHER_IDENTITY:
        return replaced(name)
    if state in (OUT_OF_ORDER, TOUCHED):
        return guarded(name)
    if state.startswith("XX"):
        return damaged(name)
    return wrong_schema(name, f"the server refused what a ledger must take (SQLSTATE {state})")


def explain_connecting(error: psycopg.Error, name: str) -> LedgerFailed:
    """Why there is no connection. libpq tells it only in words that name host, port and user."""
    said = str(error).lower()
    if any(word in said for word in ("password", "pg_hba", 'role "', "authentication")):
        return _no_login(name)
    if "database" in said and "does not exist" in said:
        return missing(name)
    if any(word in said for word in ("certificate", "ssl", "tls")):
        return _no_tls(name)
    return unreachable(name)


def unreachable(name: str) -> LedgerFailed:
    """No server answers, or it stopped answering."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The PostgreSQL server of the ledger {name} cannot be reached, or does not answer in time.",
        safe="Nothing that was acknowledged is lost.",
        next="Check that the server runs and that this machine may reach it, then repeat the same command.",
    )


def missing(name: str) -> LedgerFailed:
    """The database or the schema holds no ledger."""
    return LedgerMissing(
        ErrorCode.LEDGER_UNREACHABLE,
        f"There is no ledger {name} on this PostgreSQL server.",
        safe="Nothing was created or changed: an existing ledger is never replaced by a new, empty one.",
        next="Check the database and the schema in --ledger or DPONE_LEDGER, or restore them from a backup.",
    )


def _no_login(name: str) -> LedgerFailed:
    return LedgerMissing(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The PostgreSQL server of the ledger {name} refused the login: user, password or network is not allowed.",
        next="Check the user in the URL and the password in PGPASSFILE, PGPASSWORD or the URL.",
    )


def _no_tls(name: str) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The connection to the ledger {name} failed at TLS: the certificate is not trusted, or there is no TLS.",
        next="Check sslmode and sslrootcert in the URL, and the host name in the certificate.",
    )


def locked(name: str) -> LedgerFailed:
    """The bounded wait for a lock or an answer ended; the transaction was rolled back."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} is locked by another session, and stayed so for as long as we wait.",
        safe="Nothing was appended and nothing was lost.",
        next=_REPEAT,
    )


def denied(name: str) -> LedgerFailed:
    """The role lacks a privilege."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The user of the ledger {name} lacks a privilege that this command needs.",
        next="Grant it (see the reference page of the PostgreSQL ledger), then repeat the same command.",
    )


def read_only(name: str) -> LedgerFailed:
    """A standby, or a database set to read-only."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} is read-only: the server is a standby, or its transactions are set to read-only.",
        safe="Nothing was appended.",
        next="Name the primary server in the URL (or add target_session_attrs=read-write), then repeat the command.",
    )


def full(name: str) -> LedgerFailed:
    """Disk, memory or connections of the server are used up."""
    return LedgerFailed(
        ErrorCode.STORAGE_FULL,
        f"The PostgreSQL server of the ledger {name} has no disk space, memory or connection left.",
        safe="What is in the ledger stays as it was.",
        next="Make room on that server, then repeat the same command.",
    )


def damaged(name: str) -> LedgerFailed:
    """The server found its own files broken."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The PostgreSQL server says that the ledger {name} is damaged.",
        safe="Nothing was written to it.",
        next="Restore the database from a backup, then run: dpone audit verify",
    )


def wrong_schema(name: str, why: str) -> LedgerFailed:
    """Tables, but no ledger's."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The schema of {name} does not hold a dpone ledger: {why}.",
        safe="Nothing was written to it.",
        next="Check --ledger and DPONE_LEDGER, or restore the ledger from a backup.",
    )


def replaced(name: str) -> LedgerFailed:
    """Another ledger, or another epoch of it, stands where the one was that this process opened."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} was replaced, moved or restored while it was open.",
        safe="Nothing was appended to the ledger that is there now.",
        next="dpone ledger status",
    )


def sealed(name: str) -> LedgerFailed:
    """A sealed store was asked to take an append."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} is sealed: it was migrated, and its successor is the ledger now.",
        safe="Nothing was appended. A sealed ledger can still be read and verified.",
        next="Use the ledger that it was migrated to (--ledger or DPONE_LEDGER).",
    )


def too_new(name: str, found: int, newest: int) -> LedgerFailed:
    """A later release made this store."""
    return LedgerFailed(
        ErrorCode.LEDGER_TOO_NEW,
        f"The ledger {name} has format {found}; this dpone reads formats up to {newest}.",
        safe="Nothing was written to it.",
        next="Upgrade dpone on this machine, then repeat the same command.",
    )


def guarded(name: str) -> LedgerFailed:
    """The store's triggers refused a change that no ledger may take."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} refused a change that no ledger may take: a gap in a stream, or an edit of history.",
        safe="Nothing was appended.",
        next="dpone audit verify",
    )
