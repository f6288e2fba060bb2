"""Which endings are worth another try by a scheduler, and which need a person first. Airflow is not imported here."""

from __future__ import annotations

from typing import Final, assert_never

from ...domain.errors import ErrorCode
from ..program.outcome import Failure

TEXT_BYTES_MAX: Final = 4 * 1024


def is_worth_a_retry(code: ErrorCode) -> bool:
    """Whether the same command, later and unchanged, may end otherwise."""
    match code:
        case (
            ErrorCode.EVIDENCE_INCOMPLETE
            | ErrorCode.EVIDENCE_REQUIRED
            | ErrorCode.TARGET_BLOCKED
            | ErrorCode.PUBLICATION_UNKNOWN
            | ErrorCode.REPLICA_UNREACHABLE
            | ErrorCode.SOURCE_CHANGED
            | ErrorCode.SOURCE_UNREADABLE
            | ErrorCode.LEDGER_UNREACHABLE
            | ErrorCode.LEDGER_CONFLICT
            | ErrorCode.CONNECTION_REFUSED
            | ErrorCode.ENGINE_BUSY
            | ErrorCode.STORAGE_FULL
            | ErrorCode.INTERNAL
        ):
            return True
        case (
            ErrorCode.EVIDENCE_FAILED
            | ErrorCode.EVIDENCE_INVALID
            | ErrorCode.EVIDENCE_MISMATCH
            | ErrorCode.EVIDENCE_UNSUPPORTED
            | ErrorCode.IDENTITY_CONFLICT
            | ErrorCode.SUPERSEDED
            | ErrorCode.RETIRED
            | ErrorCode.FOREIGN_TARGET
            | ErrorCode.NOT_ADMITTED
            | ErrorCode.SCHEMA_CHANGED
            | ErrorCode.SOURCE_TOO_LARGE
            | ErrorCode.VALUE_REFUSED
            | ErrorCode.LEDGER_CORRUPT
            | ErrorCode.LEDGER_TOO_NEW
            | ErrorCode.LEDGER_NOT_SHARED
            | ErrorCode.CONNECTION_NOT_FOUND
            | ErrorCode.MANIFEST_INVALID
            | ErrorCode.SELECTOR_UNKNOWN
            | ErrorCode.SELECTOR_REQUIRED
            | ErrorCode.REQUEST_INVALID
        ):
            return False
        case _:
            assert_never(code)


def told(failure: Failure) -> str:
    """The exception's text: the safe sentences and the next command, at most TEXT_BYTES_MAX bytes."""
    encoded = str(failure).encode()
    if len(encoded) <= TEXT_BYTES_MAX:
        return str(failure)
    return encoded[: TEXT_BYTES_MAX - 3].decode(errors="ignore") + "…"
