"""Why an operation cannot be ended now: what the replicas hold, and what to type next."""

from __future__ import annotations

from ....domain.errors import DponeError, ErrorCode
from ....domain.retiring import Seen, Verdict
from .case import Case


def check_verdict(case: Case, seen: Seen) -> None:
    """Raise DponeError unless what the replicas hold allows ending, with the evidence that was named."""
    if seen.verdict is Verdict.UNREACHABLE:
        raise DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            f"Every replica must answer before the operation can be ended ({shown(seen)}).",
            safe="Nothing was changed; everything is in place.",
            next="Repeat the same command once they do, or take the replica out: dpone platform exclude",
            cause=ErrorCode.REPLICA_UNREACHABLE,
        )
    if seen.verdict is Verdict.DIFFERENT:
        raise DponeError(
            ErrorCode.FOREIGN_TARGET,
            f"The replicas do not hold the same target, and not because of the swap alone ({shown(seen)}).",
            safe="Nothing was touched; every table is as it was found.",
            next="Make the target the same on every replica, then repeat the same command.",
        )
    if seen.verdict is Verdict.STRANGE and case.decision.evidence is None:
        raise DponeError(
            ErrorCode.FOREIGN_TARGET,
            f"The target is not what this ledger knows ({shown(seen)}).",
            safe="Nothing was touched; every table is as it was found.",
            next=f"Find out why ({case.typed('explain')}), then name what the decision rests on with --evidence.",
        )


def not_settled(case: Case, seen: Seen) -> DponeError:
    """What was put aside or given back is not seen so everywhere: the next attempt looks again."""
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"The replicas do not agree yet, so nothing was ended ({shown(seen)}).",
        safe="No table was dropped and the target stays held.",
        next=case.typed("retire"),
        cause=ErrorCode.PUBLICATION_UNKNOWN,
    )


def shown(seen: Seen) -> str:
    """Every replica with what it holds."""
    return ", ".join(f"{replica}: {found.value}" for replica, found in sorted(seen.holds.items()))
