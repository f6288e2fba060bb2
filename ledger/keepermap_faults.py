"""What a server's failures mean for a ledger in KeeperMap: one sentence each, no server's text passed on."""

from __future__ import annotations

from typing import Final

from ..domain.errors import ErrorCode, LedgerFailed, LedgerMissing
from .keepermap_layout import ENTRY_BYTES_MAX
from .sql import SqlFailed

_MISSING: Final = (60, 81)  # UNKNOWN_TABLE, UNKNOWN_DATABASE
_DENIED: Final = (497, 164, 516, 392)  # ACCESS_DENIED, READONLY, AUTHENTICATION_FAILED, QUERY_IS_PROHIBITED
_UNFIT: Final = (36, 56, 115, 48, 47, 16)
"""BAD_ARGUMENTS (KeeperMap is off), UNKNOWN_STORAGE, UNKNOWN_SETTING, NOT_IMPLEMENTED, absent columns."""
_CERTAIN: Final = (*_MISSING, *_DENIED, *_UNFIT, 62, 241)
_REPEAT: Final = "Repeat the same command."


def is_certain(error: SqlFailed) -> bool:
    """Whether the statement was certainly refused before it reached Keeper."""
    return error.code in _CERTAIN


def explain(error: SqlFailed, name: str) -> LedgerFailed:
    """The fault as the product tells it."""
    if error.code in _MISSING:
        return missing(name)
    if error.code in _DENIED:
        return LedgerFailed(
            ErrorCode.LEDGER_UNREACHABLE,
            f"The user of the connection lacks a privilege on the ledger {name}.",
            next="Grant it (see the reference page of the KeeperMap ledger), then repeat the same command.",
        )
    if error.code in _UNFIT:
        return unfit(name)
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} cannot be reached: the server, or its Keeper, does not answer in time.",
        safe="Nothing that was acknowledged is lost.",
        next="Check that the server and its Keeper run, then repeat the same command.",
    )


def missing(name: str) -> LedgerFailed:
    """There are no tables, or no identity record in them."""
    return LedgerMissing(
        ErrorCode.LEDGER_UNREACHABLE,
        f"There is no ledger {name} on this server.",
        safe="Nothing was created or changed: an existing ledger is never replaced by a new, empty one.",
        next="Check the connection and the database in --ledger or DPONE_LEDGER.",
    )


def unfit(name: str) -> LedgerFailed:
    """The server has no KeeperMap, or no strict mode."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The server cannot hold the ledger {name}: KeeperMap or its strict mode is not available there.",
        safe="Nothing was appended.",
        next="Set keeper_map_path_prefix in the server's configuration (ClickHouse 23.4 or later).",
    )


def not_strict(name: str) -> LedgerFailed:
    """An insert of a key that existed was not refused."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The server took an insert of a key of the ledger {name} that exists: its strict mode does not hold.",
        safe="The record that was inserted again was the same one. Nothing is appended to such a ledger.",
        next="Use a server whose KeeperMap honours keeper_map_strict_mode, or another kind of ledger.",
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


def too_large(name: str) -> LedgerFailed:
    """More than one Keeper transaction carries."""
    return LedgerFailed(
        ErrorCode.EVIDENCE_INVALID,
        f"An append to the ledger {name} is larger than {ENTRY_BYTES_MAX // 1024} KiB, which is what one Keeper "
        "transaction carries.",
        safe="Nothing was appended.",
        next="Use a PostgreSQL ledger, or fewer metric columns and gates in the manifest.",
    )


def busy(name: str) -> LedgerFailed:
    """Others were always first, for as long as we tried."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"So many processes append to the ledger {name} that this append found no place in time.",
        safe="Nothing was appended and nothing was lost.",
        next=_REPEAT,
    )
