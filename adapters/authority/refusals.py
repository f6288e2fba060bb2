"""The ways a platform command is refused. Replicas are named by their ``{replica}`` macro, never by host or port."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.errors import DponeError, ErrorCode, LedgerFailed
from ...domain.operation import Operation
from ...domain.slot import TargetSlot

UNTOUCHED = "Nothing was read or changed."


def not_admitted(what: str, next_: str, errors: Sequence[str] = ()) -> DponeError:
    """The platform is not what was admitted, or nothing was."""
    return DponeError(ErrorCode.NOT_ADMITTED, what, safe=UNTOUCHED, next=next_, errors=tuple(errors))


def invalid(what: str, next_: str) -> DponeError:
    """The request is wrong."""
    return DponeError(ErrorCode.REQUEST_INVALID, what, safe=UNTOUCHED, next=next_)


def unsupported(what: str, next_: str) -> DponeError:
    """The cluster is of a kind that cannot be published to."""
    return DponeError(ErrorCode.EVIDENCE_UNSUPPORTED, what, safe=UNTOUCHED, next=next_, exit_code=2)


def not_shared() -> DponeError:
    """A file on one machine is no memory for a cluster."""
    return DponeError(
        ErrorCode.LEDGER_NOT_SHARED,
        "A SQLite ledger belongs to one machine; a cluster's ledger must be reachable from wherever a run may start.",
        safe=UNTOUCHED,
        next="Use --ledger keeper://host:port,…/root, postgresql://… or keepermap://connection/database",
    )


def other_ledger(what: str) -> LedgerFailed:
    """Cluster and ledger do not belong together."""
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        what,
        safe="Nothing was read or changed; no table was touched and no ledger was created.",
        next="Name the ledger that belongs to this cluster with --ledger, or put it back.",
    )


def not_provisioned(cluster: str, reference: str) -> DponeError:
    """No replica bears a marker that covers what was asked for."""
    return not_admitted(
        f"The cluster {cluster} is not provisioned: its servers bear no marker of a ledger.",
        f"dpone platform provision --connection {reference} --cluster {cluster}",
    )


def blocked(slot: TargetSlot, holder: Operation | None) -> DponeError:
    """A target is in work."""
    from ...domain.steps import blocked as held

    return held(slot, holder)


def together(names: Sequence[str]) -> str:
    """Names as a person lists them."""
    return ", ".join(names) if names else "none"
