"""Settling a publication: what every replica shows, and the one next thing that is safe to do.

The order is: look; any unreachable or foreign replica stops everything; where all hold the new generation, seal what
a late statement could still use and look again; where some do not, rename the new table there to a name that only
this attempt knows (the fence), look again, and dispatch the next epoch to those replicas alone. Nothing here is ever
derived from what was sent: only from what is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .names import generation_prefix, is_candidate_name, predecessor_name
from .tables import ReplicaLook, TableIdentity


class Standing(StrEnum):
    """What one replica holds under the target's name."""

    DESIRED = "DESIRED"
    PREDECESSOR = "PREDECESSOR"
    MISSING = "MISSING"
    LOST = "LOST"
    FOREIGN = "FOREIGN"
    UNREACHABLE = "UNREACHABLE"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A publication as the ledger knows it. ``predecessor`` lacks a replica where no table is expected."""

    table: str
    generation: str
    new: Mapping[str, TableIdentity]
    predecessor: Mapping[str, TableIdentity]


@dataclass(frozen=True, slots=True)
class Rename:
    """One table on one replica gets another name."""

    replica: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing may be touched. ``standings`` says why, by replica."""

    reason: Standing
    standings: Mapping[str, Standing]


@dataclass(frozen=True, slots=True)
class Seal:
    """All replicas hold the new generation: rename what is left under names that a late statement could use."""

    renames: tuple[Rename, ...]


@dataclass(frozen=True, slots=True)
class Proven:
    """Sealed and seen again: the commit may be recorded."""

    sealed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fence:
    """These replicas have not swapped: rename the new table there to this attempt's name."""

    renames: tuple[Rename, ...]


@dataclass(frozen=True, slots=True)
class Redispatch:
    """The fence holds on these replicas: record it, record the next epoch and send to each directly."""

    replicas: tuple[str, ...]


Settlement = Stop | Seal | Proven | Fence | Redispatch


def classify(look: ReplicaLook, expected: Expectation) -> Standing:
    """What this replica holds."""
    if not look.reachable:
        return Standing.UNREACHABLE
    live = look.tables.get(expected.table)
    new, before = expected.new[look.replica], expected.predecessor.get(look.replica)
    if live == new:
        return Standing.DESIRED
    if live is not None and live != before:
        return Standing.FOREIGN
    if find(look, new) is None:
        return Standing.LOST
    return Standing.PREDECESSOR if live == before else Standing.MISSING


def find(look: ReplicaLook, identity: TableIdentity) -> str | None:
    """The name under which the replica holds this very table."""
    return next((name for name, held in look.tables.items() if held == identity), None)


def standings(looks: Sequence[ReplicaLook], expected: Expectation) -> dict[str, Standing]:
    """Every replica's standing; one that was not looked at counts as unreachable."""
    unseen = dict.fromkeys(expected.new, Standing.UNREACHABLE)
    return unseen | {look.replica: classify(look, expected) for look in looks}


def ready_to_dispatch(looks: Sequence[ReplicaLook], expected: Expectation, candidate: str) -> Stop | None:
    """None when every replica holds the expected predecessor and the candidate under its name."""
    seen = standings(looks, expected)
    for stop in (Standing.UNREACHABLE, Standing.FOREIGN, Standing.LOST):
        if stop in seen.values():
            return Stop(stop, seen)
    for look in looks:
        in_place = look.tables.get(candidate) == expected.new[look.replica]
        if seen[look.replica] is not Standing.PREDECESSOR or not in_place:
            return Stop(Standing.FOREIGN, seen)
    return None


def settle(
    looks: Sequence[ReplicaLook], expected: Expectation, next_candidate: str, *, looked_after_seal: bool
) -> Settlement:
    """The next safe thing. ``next_candidate`` is a name that only this attempt may use as a destination.

    ``looked_after_seal`` tells that the previous answer was a Seal that has been carried out since: without a second
    look a server that ran a statement twice would be sealed the wrong way round.
    """
    seen = standings(looks, expected)
    for stop in (Standing.UNREACHABLE, Standing.FOREIGN, Standing.LOST):
        if stop in seen.values():
            return Stop(stop, seen)
    lagging = [look for look in looks if seen[look.replica] is not Standing.DESIRED]
    if lagging:
        return _fence(lagging, expected, next_candidate)
    return _seal(looks, expected, seen, looked_after_seal=looked_after_seal)


def _fence(lagging: Sequence[ReplicaLook], expected: Expectation, next_candidate: str) -> Settlement:
    renames = []
    for look in lagging:
        name = find(look, expected.new[look.replica])
        if name is not None and name != next_candidate:
            renames.append(Rename(look.replica, name, next_candidate))
    if renames:
        return Fence(tuple(renames))
    return Redispatch(tuple(look.replica for look in lagging))


def _seal(
    looks: Sequence[ReplicaLook], expected: Expectation, seen: Mapping[str, Standing], *, looked_after_seal: bool
) -> Settlement:
    renames = []
    for look in looks:
        for name, identity in look.tables.items():
            if not is_candidate_name(name, expected.table, expected.generation):
                continue
            if identity != expected.predecessor.get(look.replica):
                return Stop(Standing.FOREIGN, seen)
            renames.append(Rename(look.replica, name, predecessor_name(expected.table, expected.generation)))
    if renames or not looked_after_seal:
        return Seal(tuple(renames))
    return Proven(_sealed(looks, expected))


def _sealed(looks: Sequence[ReplicaLook], expected: Expectation) -> dict[str, str]:
    prefix = generation_prefix(expected.table, expected.generation)
    kept = {}
    for look in looks:
        before = expected.predecessor.get(look.replica)
        name = None if before is None else find(look, before)
        if name is not None and name.startswith(prefix):
            kept[look.replica] = name
    return kept
