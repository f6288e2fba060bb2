"""Ending an operation by a person's decision: what the replicas hold, and what that allows.

From its dispatch on, an operation can be ended only while every replica answers and all hold the same target. Nothing
is ever derived from what was sent; what is under a name that a late statement knows is put aside first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .names import generation_prefix, is_candidate_name, is_retired_name, retired_name
from .operation import BEFORE_DISPATCH, Operation, State
from .publication import Expectation, Rename, Standing, Stop, find, settle
from .tables import ReplicaLook, TableIdentity


class Holds(StrEnum):
    """What one replica holds under the target's name."""

    NEW = "the new generation"
    BEFORE = "what was live before"
    MISSING = "no table"
    FOREIGN = "another table"
    UNREACHABLE = "no answer"


class Verdict(StrEnum):
    """What all replicas together mean for ending the operation."""

    NEW = "NEW"  # the new generation is live everywhere
    BEFORE = "BEFORE"  # the predecessor, or no table where none was expected, everywhere or once it is put back
    MIXED = "MIXED"  # some have swapped: settle first
    STRANGE = "STRANGE"  # the same everywhere, and not what the ledger knows
    DIFFERENT = "DIFFERENT"  # not the same everywhere, and not by the swap alone
    UNREACHABLE = "UNREACHABLE"


@dataclass(frozen=True, slots=True)
class Seen:
    """The replicas at one moment. ``recovers`` tells that the same command would go on by itself."""

    verdict: Verdict
    holds: Mapping[str, Holds]
    recovers: bool


def holds(look: ReplicaLook, expected: Expectation) -> Holds:
    """What this replica holds."""
    if not look.reachable:
        return Holds.UNREACHABLE
    live = look.tables.get(expected.table)
    if live == expected.new[look.replica]:
        return Holds.NEW
    if live == expected.predecessor.get(look.replica):
        return Holds.BEFORE
    return Holds.MISSING if live is None else Holds.FOREIGN


def judge(operation: Operation, looks: Sequence[ReplicaLook], expected: Expectation) -> Seen:
    """What may become of an operation that has been dispatched."""
    looks = [look for look in looks if look.replica in expected.new]
    found = {look.replica: holds(look, expected) for look in looks}
    found = {**dict.fromkeys(expected.new, Holds.UNREACHABLE), **found}
    verdict = _verdict(operation, looks, expected, set(found.values()))
    return Seen(verdict, found, _recovers(operation, verdict, looks, expected))


def _verdict(operation: Operation, looks: Sequence[ReplicaLook], expected: Expectation, found: set[Holds]) -> Verdict:
    if Holds.UNREACHABLE in found:
        return Verdict.UNREACHABLE
    if found == {Holds.NEW}:
        return Verdict.NEW
    proven = operation.target_commit == "proven"
    if Holds.FOREIGN in found or proven or not _can_be_put_back(looks, expected):
        if Holds.NEW in found and Holds.FOREIGN not in found and not proven:
            return Verdict.MIXED
        alike = len({look.tables.get(expected.table) for look in looks}) == 1
        return Verdict.STRANGE if alike else Verdict.DIFFERENT
    return Verdict.MIXED if Holds.NEW in found else Verdict.BEFORE


def _can_be_put_back(looks: Sequence[ReplicaLook], expected: Expectation) -> bool:
    missing = [look for look in looks if holds(look, expected) is Holds.MISSING]
    return all(find(look, expected.predecessor[look.replica]) is not None for look in missing)


def _recovers(operation: Operation, verdict: Verdict, looks: Sequence[ReplicaLook], expected: Expectation) -> bool:
    if operation.state in BEFORE_DISPATCH:
        return True
    if operation.state is State.FAILED:
        return False
    if operation.state is not State.DISPATCHED:
        return verdict in (Verdict.NEW, Verdict.UNREACHABLE)
    settlement = settle(looks, expected, "", looked_after_seal=False)
    return not (isinstance(settlement, Stop) and settlement.reason in (Standing.FOREIGN, Standing.LOST))


def put_aside(looks: Sequence[ReplicaLook], expected: Expectation, fence: int) -> tuple[Rename, ...]:
    """Every candidate and arm gets a name that no statement knows, whoever's table it is."""
    return tuple(
        Rename(look.replica, name, retired_name(name, fence))
        for look in looks
        if look.replica in expected.new
        for name in sorted(look.tables)
        if is_open_name(name, expected)
    )


def put_back(looks: Sequence[ReplicaLook], expected: Expectation) -> tuple[Rename, ...]:
    """Where the name is free, and no replica holds the new generation: the recorded predecessor, by identity."""
    looks = [look for look in looks if look.replica in expected.new]
    if any(holds(look, expected) is Holds.NEW for look in looks):
        return ()
    found = []
    for look in looks:
        before = expected.predecessor.get(look.replica)
        name = find(look, before) if before is not None and holds(look, expected) is Holds.MISSING else None
        if name is not None:
            found.append(Rename(look.replica, name, expected.table))
    return tuple(found)


def is_open_name(name: str, expected: Expectation) -> bool:
    """Whether a late statement of the operation could still use the name."""
    return is_candidate_name(name, expected.table, expected.generation) and not is_retired_name(name)


def left_behind(
    looks: Sequence[ReplicaLook], expected: Expectation, identities: Mapping[str, TableIdentity]
) -> dict[str, dict[str, TableIdentity]]:
    """By name: the tables beside the target, of this generation's names, that are these very ones, by replica."""
    prefix = generation_prefix(expected.table, expected.generation)
    found: dict[str, dict[str, TableIdentity]] = {}
    for look in looks:
        for name, held in sorted(look.tables.items()):
            if name.startswith(prefix) and look.replica in expected.new and held == identities.get(look.replica):
                found.setdefault(name, {})[look.replica] = held
    return found
