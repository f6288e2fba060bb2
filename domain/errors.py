"""Error codes and the one exception family that carries them to a person.

Every error says what happened (``what``), what is safe now (``safe``) and what to type next (``next``). None of the
three may hold a credential, a row value or a server's full endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class ErrorCode(StrEnum):
    """The closed list of codes that scripts may test for."""

    EVIDENCE_REQUIRED = "DPONE_REPLAY_QUALITY_EVIDENCE_REQUIRED"
    EVIDENCE_MISMATCH = "DPONE_REPLAY_QUALITY_EVIDENCE_MISMATCH"
    EVIDENCE_INVALID = "DPONE_REPLAY_QUALITY_EVIDENCE_INVALID"
    EVIDENCE_FAILED = "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED"
    EVIDENCE_INCOMPLETE = "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE"
    EVIDENCE_UNSUPPORTED = "DPONE_REPLAY_QUALITY_EVIDENCE_UNSUPPORTED"
    IDENTITY_CONFLICT = "DPONE_REPLAY_IDENTITY_CONFLICT"
    TARGET_BLOCKED = "DPONE_REPLAY_TARGET_BLOCKED"
    SUPERSEDED = "DPONE_REPLAY_SUPERSEDED"
    RETIRED = "DPONE_REPLAY_RETIRED"
    PUBLICATION_UNKNOWN = "DPONE_PUBLICATION_UNKNOWN"
    FOREIGN_TARGET = "DPONE_PUBLICATION_FOREIGN_TARGET"
    REPLICA_UNREACHABLE = "DPONE_PUBLICATION_REPLICA_UNREACHABLE"
    NOT_ADMITTED = "DPONE_PUBLICATION_NOT_ADMITTED"
    SCHEMA_CHANGED = "DPONE_SCHEMA_CHANGED"
    SOURCE_CHANGED = "DPONE_SOURCE_CHANGED"
    SOURCE_TOO_LARGE = "DPONE_SOURCE_TOO_LARGE"
    SOURCE_UNREADABLE = "DPONE_SOURCE_UNREADABLE"
    VALUE_REFUSED = "DPONE_SOURCE_VALUE_REFUSED"
    LEDGER_UNREACHABLE = "DPONE_LEDGER_UNREACHABLE"
    LEDGER_CONFLICT = "DPONE_LEDGER_CONFLICT"
    LEDGER_CORRUPT = "DPONE_LEDGER_CORRUPT"
    LEDGER_TOO_NEW = "DPONE_LEDGER_TOO_NEW"
    LEDGER_NOT_SHARED = "DPONE_LEDGER_NOT_SHARED"
    CONNECTION_NOT_FOUND = "DPONE_CONNECTION_NOT_FOUND"
    CONNECTION_REFUSED = "DPONE_CONNECTION_REFUSED"
    MANIFEST_INVALID = "DPONE_MANIFEST_INVALID"
    SELECTOR_UNKNOWN = "DPONE_MANIFEST_SELECTOR_UNKNOWN"
    SELECTOR_REQUIRED = "DPONE_MANIFEST_SELECTOR_REQUIRED"
    REQUEST_INVALID = "DPONE_REQUEST_INVALID"
    ENGINE_BUSY = "DPONE_ENGINE_BUSY"
    STORAGE_FULL = "DPONE_STORAGE_FULL"
    INTERNAL = "DPONE_INTERNAL"

    @property
    def exit_code(self) -> int:
        """Process exit code: 2 when the request is wrong or not admitted, else 1."""
        return 2 if self in _REQUEST_CODES else 1


_REQUEST_CODES = frozenset(
    {
        ErrorCode.REQUEST_INVALID,
        ErrorCode.MANIFEST_INVALID,
        ErrorCode.SELECTOR_UNKNOWN,
        ErrorCode.SELECTOR_REQUIRED,
        ErrorCode.IDENTITY_CONFLICT,
        ErrorCode.CONNECTION_NOT_FOUND,
        ErrorCode.LEDGER_NOT_SHARED,
        ErrorCode.NOT_ADMITTED,
    }
)


class DponeError(Exception):
    """An expected ending with a code.

    ``cause`` is the specific code behind an INCOMPLETE. ``known`` holds what is known at that moment and may be
    shown (``replay_details`` of the document). ``block`` are the lines to paste that ``next`` ends with, every foreign
    name in them quoted. ``exit_code`` overrides the code's own, for an UNSUPPORTED route.
    """

    def __init__(
        self,
        code: ErrorCode,
        what: str,
        *,
        safe: str = "Nothing was changed.",
        next: str | None = None,
        cause: ErrorCode | None = None,
        errors: tuple[str, ...] = (),
        known: Mapping[str, Any] | None = None,
        exit_code: int | None = None,
        block: str | None = None,
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.safe = safe
        self.next = next
        self.cause = cause
        self.errors = errors or (what,)
        self.block = block
        self.known: dict[str, Any] = dict(known or {})
        self.exit_code = code.exit_code if exit_code is None else exit_code


class SourceFailed(DponeError):
    """The source cannot be read as declared; nothing of it was published."""


class LedgerFailed(DponeError):
    """The ledger cannot be opened, read or trusted."""


class LedgerMissing(LedgerFailed):
    """There is no ledger where one should be; it was not created."""


class AppendConflict(LedgerFailed):
    """Another process appended to one of the streams first. Expected: the loop rebuilds and goes on."""

    def __init__(self, what: str = "Another process appended to the same stream first.") -> None:
        super().__init__(
            ErrorCode.LEDGER_CONFLICT, what, safe="Nothing of this append was stored.", next="Repeat the same command."
        )


class AppendUnknown(LedgerFailed):
    """The reply to an append was lost and its outcome could not be read back."""


class EngineBusy(DponeError):
    """Another process holds the embedded engine's folder."""


class EngineFailed(DponeError):
    """A statement failed. ``engine_code`` is ClickHouse's numeric error code when it gave one."""

    def __init__(self, code: ErrorCode, what: str, *, engine_code: int | None = None, **rest: Any) -> None:
        super().__init__(code, what, **rest)
        self.engine_code = engine_code


class ReaderFailed(DponeError):
    """The reader gave no observation. ``reaped`` tells whether its process is certainly gone."""

    def __init__(self, what: str, *, reaped: bool, fits: bool = True) -> None:
        super().__init__(
            ErrorCode.EVIDENCE_INCOMPLETE,
            what,
            safe="The reader only reads; tables and ledger are as they were.",
            next="Repeat the same command.",
        )
        self.reaped = reaped
        self.fits = fits


class IllegalTransition(DponeError):
    """An event that its stream's state does not allow: corrupt history or a defect, never a user's mistake."""

    def __init__(self, what: str) -> None:
        super().__init__(
            ErrorCode.EVIDENCE_INVALID,
            what,
            safe="Nothing was appended after the event that does not fit.",
            next="dpone audit verify",
        )
