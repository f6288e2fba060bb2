"""What can be wrong with the place where a projection is kept: one sentence each, no database's message passed on."""

from __future__ import annotations

from typing import Any, Final

from ...domain.errors import DponeError, ErrorCode

_SAFE: Final = (
    "The ledger is untouched, and what the tables held before is as it was: rows and position change together."
)
_FORM: Final = "Use --to sqlite:///absolute/path/projection.sqlite or --to 'postgresql://user@host/database'."
_REPEAT: Final = "Repeat the same command."


class ProjectionFailed(DponeError):
    """The tables cannot be opened, read or written. ``passing``: it may end by itself, a follower waits for that."""

    def __init__(self, code: ErrorCode, what: str, *, passing: bool = False, safe: str = _SAFE, **rest: Any) -> None:
        super().__init__(code, what, safe=safe, **rest)
        self.passing = passing


def refused(problem: str) -> ProjectionFailed:
    """The URL cannot be meant. It is not quoted: it could hold a password."""
    return ProjectionFailed(
        ErrorCode.REQUEST_INVALID, f"The projection's URL is wrong: {problem}.", safe="Nothing was changed.", next=_FORM
    )


def not_installed(scheme: str, package: str) -> ProjectionFailed:
    """An extra is missing here."""
    return ProjectionFailed(
        ErrorCode.REQUEST_INVALID,
        f"A {scheme}:// projection needs {package}, which is not installed.",
        safe="Nothing was changed.",
        next="pip install 'dpone-replay[postgres]'",
    )


def unreachable(name: str) -> ProjectionFailed:
    """No server answers, or the file is out of reach."""
    return ProjectionFailed(
        ErrorCode.CONNECTION_REFUSED,
        f"The projection {name} cannot be reached, or does not answer in time.",
        passing=True,
        next="Check that its server runs or its folder is there, then repeat the same command.",
    )


def locked(name: str) -> ProjectionFailed:
    """The bounded wait for another session ended."""
    return ProjectionFailed(
        ErrorCode.CONNECTION_REFUSED,
        f"The projection {name} is locked by another session, and stayed so for as long as we wait.",
        passing=True,
        next=_REPEAT,
    )


def read_only(name: str) -> ProjectionFailed:
    """A standby, a read-only file or a read-only file system."""
    return ProjectionFailed(
        ErrorCode.CONNECTION_REFUSED,
        f"The projection {name} is read-only.",
        passing=True,
        next="Name the primary server or a place that may be written, then repeat the same command.",
    )


def denied(name: str) -> ProjectionFailed:
    """The login or a privilege is missing."""
    return ProjectionFailed(
        ErrorCode.CONNECTION_REFUSED,
        f"The projection {name} refused the login, or its user lacks a privilege that this command needs.",
        next="Check the user in the URL and the password in PGPASSFILE, or grant it (docs: reference/projections).",
    )


def full(name: str) -> ProjectionFailed:
    """No space, memory or connection left there."""
    return ProjectionFailed(
        ErrorCode.STORAGE_FULL,
        f"There is no space left for the projection {name}.",
        passing=True,
        next="Make room there, then repeat the same command.",
    )


def foreign(name: str, what: str) -> ProjectionFailed:
    """Something stands there that this product did not make as a projection: it is never touched."""
    return ProjectionFailed(
        ErrorCode.REQUEST_INVALID,
        f"The place {name} is not a projection's: {what}.",
        safe="Nothing there was changed.",
        next="Give the projection a file, or a schema (…?schema=NAME), of its own.",
    )


def absent(name: str) -> ProjectionFailed:
    """There are no tables."""
    return ProjectionFailed(
        ErrorCode.REQUEST_INVALID,
        f"There is no projection {name}.",
        safe="Nothing was changed.",
        next="dpone ledger project --to URL",
    )


def damaged(name: str) -> ProjectionFailed:
    """The tables do not take what they must, or their database is broken."""
    return ProjectionFailed(
        ErrorCode.EVIDENCE_INVALID,
        f"The tables of the projection {name} are damaged, or not those that this release makes.",
        next="dpone ledger rebuild --to URL",
    )


def other(name: str, what: str) -> ProjectionFailed:
    """The tables follow something else than this ledger as it is now."""
    return ProjectionFailed(
        ErrorCode.EVIDENCE_MISMATCH,
        f"The projection {name} cannot be continued from this ledger: {what}.",
        next="Check --ledger; if it is the right one: dpone ledger rebuild --to URL",
    )


def absent_database(name: str) -> ProjectionFailed:
    """A schema can be made, a database is somebody else's to make."""
    return ProjectionFailed(
        ErrorCode.REQUEST_INVALID,
        f"There is no such database on this PostgreSQL server: {name}.",
        safe="Nothing was created or changed.",
        next="Check the database in --to, or create it.",
    )
