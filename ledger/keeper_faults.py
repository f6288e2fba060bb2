"""What can go wrong with a ledger in Keeper, as a person is told: by the ledger's short name, never by a server's."""

from __future__ import annotations

from ..domain.errors import ErrorCode, LedgerFailed, LedgerMissing
from .keeper_url import AUTH, AUTH_FILE
from .recorder import STORE_FORMAT

_REPEAT = "Repeat the same command."


def unreachable(name: str, seconds: float) -> LedgerFailed:
    """No server answered within the bound."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The Keeper of the ledger {name} did not answer within {seconds:g} seconds.",
        safe="Whatever was appended before is kept. No new ledger was started in its place.",
        next="Check that the servers named in --ledger or DPONE_LEDGER are up, then repeat the same command.",
    )


def reply_lost(name: str) -> LedgerFailed:
    """The connection ended between a request and its reply."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The connection to the Keeper of the ledger {name} was lost before the reply came.",
        safe="Everything is left in place.",
        next=_REPEAT,
    )


def unwilling(name: str) -> LedgerFailed:
    """Keeper refused a transaction for a reason of its own."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The Keeper of the ledger {name} refused a request: it is throttled, or a quota on its nodes is used up.",
        safe="Nothing was appended and nothing was lost.",
        next="Ask the Keeper's owner, then repeat the same command.",
    )


def crowded(name: str, seconds: float) -> LedgerFailed:
    """Other processes appended first for as long as we try."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"Others append to the ledger {name} so fast that this append found no place within {seconds:g} seconds.",
        safe="Nothing was appended and nothing was lost.",
        next=_REPEAT,
    )


def not_allowed(name: str) -> LedgerFailed:
    """Keeper's access control said no."""
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The Keeper of the ledger {name} does not allow this to the present user.",
        safe="Nothing was changed.",
        next=f"Set {AUTH}=user:password, or {AUTH_FILE}, to the user that the ledger was created with.",
    )


def absent(name: str) -> LedgerFailed:
    """A ledger should be there and is not."""
    return LedgerMissing(
        ErrorCode.LEDGER_UNREACHABLE,
        f"There is no ledger {name} in this Keeper.",
        safe="Nothing was created or changed: an existing ledger is never replaced by a new, empty one.",
        next="Check the servers and the root in --ledger or DPONE_LEDGER, or restore the ledger.",
    )


def occupied(name: str) -> LedgerFailed:
    """Something else lies where a ledger is to be made."""
    return LedgerMissing(
        ErrorCode.LEDGER_CORRUPT,
        f"The root {name} holds something, but no ledger: another product's nodes, or what is left of a ledger.",
        safe="Nothing was created or changed.",
        next="Choose a root that does not exist yet, or restore the ledger.",
    )


def replaced(name: str) -> LedgerFailed:
    """Another ledger, or none, lies where the opened one was."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} was removed, or replaced by another one, while it was open.",
        safe="Nothing was appended to what is there now.",
        next="Put the original ledger back, then repeat the same command.",
    )


def sealed(name: str) -> LedgerFailed:
    """A sealed store was asked to take an append."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} is sealed: it was migrated, and its successor is the ledger now.",
        safe="Nothing was appended. A sealed ledger can still be read and verified.",
        next="Use the ledger that it was migrated to (--ledger or DPONE_LEDGER).",
    )


def too_new(name: str, found: int) -> LedgerFailed:
    """Written by a newer version."""
    return LedgerFailed(
        ErrorCode.LEDGER_TOO_NEW,
        f"The ledger {name} has format {found}; this dpone reads formats up to {STORE_FORMAT}.",
        safe="Nothing was written to it.",
        next="Upgrade dpone on this machine, then repeat the same command.",
    )


def damaged(name: str, what: str) -> LedgerFailed:
    """The store's own nodes contradict each other or are not what this format writes."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} is damaged: {what}.",
        safe="Nothing was appended.",
        next="dpone audit verify",
    )


def gap(name: str) -> LedgerFailed:
    """An append would leave out a version."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} refused an append that would leave a gap in a stream.",
        safe="Nothing was appended.",
        next="dpone audit verify",
    )


def too_large(name: str, found: int, most: int) -> LedgerFailed:
    """An append that Keeper would answer by ending the connection."""
    return LedgerFailed(
        ErrorCode.REQUEST_INVALID,
        f"An append of {found:,} bytes does not fit into the ledger {name}: Keeper takes at most {most:,}.",
        safe="It was not sent; nothing was appended.",
        next="Use fewer metrics or gates in one process, or a postgresql:// ledger.",
    )


def not_installed() -> LedgerFailed:
    """The client library is missing."""
    return LedgerFailed(
        ErrorCode.REQUEST_INVALID,
        "A keeper:// ledger needs kazoo, which is not installed.",
        next="pip install 'dpone-replay[keeper]'",
    )
