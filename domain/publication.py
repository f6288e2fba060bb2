"""Settling a publication: what every replica shows, and the one next thing that is safe to do.

The order is: look; any foreign or unreachable replica stops everything; where a replica lost the new table, make it
again from the others; where all hold the new generation, seal what a late statement could still use and look again;
where some do not, rename the new table there to a name that only this attempt knows (the fence), look again, and
dispatch the next epoch to those replicas alone. Nothing here is ever derived from what was sent: only from what is
seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from .names import generation_prefix, is_candidate_name, is_rebuilding_name, predecessor_name, rebuilding_name_of
from .ports import SwapForm
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
class Rebuild:
    """These replicas lost the new table and another one has it: make it again under this attempt's name.

    ``unfinished`` is, by replica, what an earlier attempt began: a table that may lack rows.
    """

    replicas: tuple[str, ...]
    unfinished: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redispatch:
    """The fence holds on these replicas: record it, record the next epoch and send to each directly."""

    forms: Mapping[str, SwapForm]

    @property
    def replicas(self) -> tuple[str, ...]:
        """The lagging replicas."""
        return tuple(self.forms)


Settlement = Stop | Seal | Proven | Fence | Rebuild | Redispatch

_STOPS = (Standing.FOREIGN, Standing.UNREACHABLE)


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
    if _finished(look, expected) is None:
        return Standing.LOST
    return Standing.PREDECESSOR if live == before else Standing.MISSING


def find(look: ReplicaLook, identity: TableIdentity) -> str | None:
    """The name under which the replica holds this very table."""
    return next((name for name, held in look.tables.items() if held == identity), None)


def _finished(look: ReplicaLook, expected: Expectation) -> str | None:
    """The name of the new generation's table with all its rows."""
    return next((name for name in _holding_new(look, expected) if not _is_unfinished(name, expected)), None)


def _unfinished(look: ReplicaLook, expected: Expectation) -> str | None:
    """The name of the new generation's table that is being made again, or was left so."""
    return next((name for name in _holding_new(look, expected) if _is_unfinished(name, expected)), None)


def _holding_new(look: ReplicaLook, expected: Expectation) -> list[str]:
    return [name for name, held in look.tables.items() if held == expected.new[look.replica]]


def _is_unfinished(name: str, expected: Expectation) -> bool:
    return is_rebuilding_name(name, expected.table, expected.generation)


def standings(looks: Sequence[ReplicaLook], expected: Expectation) -> dict[str, Standing]:
    """Every replica's standing; one that was not looked at counts as unreachable."""
    unseen = dict.fromkeys(expected.new, Standing.UNREACHABLE)
    return unseen | {look.replica: classify(look, expected) for look in looks}


def ready_to_dispatch(looks: Sequence[ReplicaLook], expected: Expectation, candidate: str) -> Stop | None:
    """None when every replica holds the expected predecessor and the candidate under its name."""
    looks = _spoken_of(looks, expected)
    seen = standings(looks, expected)
    for stop in (*_STOPS, Standing.LOST):
        if stop in seen.values():
            return Stop(stop, seen)
    for look in looks:
        in_place = look.tables.get(candidate) == expected.new[look.replica]
        if seen[look.replica] is not Standing.PREDECESSOR or not in_place:
            return Stop(Standing.FOREIGN, seen)
    return None


def settle(
    looks: Sequence[ReplicaLook],
    expected: Expectation,
    next_candidate: str,
    *,
    looked_after_seal: bool,
    exchanges: bool = True,
) -> Settlement:
    """The next safe thing. ``next_candidate`` is a name that only this attempt may use as a destination.

    ``exchanges`` tells whether two tables can be exchanged here. ``looked_after_seal`` tells that the previous answer
    was a Seal that has been carried out since: without a second look a server that ran a statement twice would be
    sealed the wrong way round.
    """
    looks = _spoken_of(looks, expected)
    seen = standings(looks, expected)
    for stop in _STOPS:
        if stop in seen.values():
            return Stop(stop, seen)
    lost = tuple(replica for replica, standing in seen.items() if standing is Standing.LOST)
    if lost:
        return Stop(Standing.LOST, seen) if len(lost) == len(seen) else Rebuild(lost, _begun(looks, lost, expected))
    lagging = [look for look in looks if seen[look.replica] is not Standing.DESIRED]
    if lagging:
        return _fence(lagging, expected, next_candidate, exchanges=exchanges)
    return _seal(looks, expected, seen, next_candidate, looked_after_seal=looked_after_seal)


def _begun(looks: Sequence[ReplicaLook], lost: Sequence[str], expected: Expectation) -> dict[str, str]:
    found = {look.replica: _unfinished(look, expected) for look in looks if look.replica in lost}
    return {replica: name for replica, name in found.items() if name is not None}


def swap_form(look: ReplicaLook, table: str, *, exchanges: bool) -> SwapForm:
    """What a publication statement must do on a replica that looks like this."""
    if table not in look.tables:
        return SwapForm.FIRST
    return SwapForm.EXCHANGE if exchanges else SwapForm.RENAME


def _spoken_of(looks: Sequence[ReplicaLook], expected: Expectation) -> list[ReplicaLook]:
    """A replica that was admitted after the operation is none of its business."""
    return [look for look in looks if look.replica in expected.new]


def _fence(
    lagging: Sequence[ReplicaLook], expected: Expectation, next_candidate: str, *, exchanges: bool
) -> Settlement:
    renames = []
    for look in lagging:
        name = _finished(look, expected)
        if name is not None and look.tables.get(next_candidate) != expected.new[look.replica]:
            renames.append(Rename(look.replica, name, next_candidate))
    if renames:
        return Fence(tuple(renames))
    return Redispatch({look.replica: swap_form(look, expected.table, exchanges=exchanges) for look in lagging})


def _seal(
    looks: Sequence[ReplicaLook],
    expected: Expectation,
    seen: Mapping[str, Standing],
    next_candidate: str,
    *,
    looked_after_seal: bool,
) -> Settlement:
    renames = []
    for look in looks:
        for name, identity in look.tables.items():
            if not is_candidate_name(name, expected.table, expected.generation):
                continue
            aside = _sealed_name(look.replica, identity, expected, next_candidate)
            if aside is None:
                return Stop(Standing.FOREIGN, seen)
            renames.append(Rename(look.replica, name, aside))
    if renames or not looked_after_seal:
        return Seal(tuple(renames))
    return Proven(_sealed(looks, expected))


def _sealed_name(replica: str, identity: TableIdentity, expected: Expectation, next_candidate: str) -> str | None:
    """Where a table that is left under a candidate's name goes; None for a stranger's.

    Beside the live table a second one of its identity is what a stale process made when it rebuilt a lost table.
    """
    if identity == expected.predecessor.get(replica):
        return predecessor_name(expected.table, expected.generation)
    if identity == expected.new[replica]:
        return rebuilding_name_of(next_candidate, expected.table, expected.generation)
    return None


def _sealed(looks: Sequence[ReplicaLook], expected: Expectation) -> dict[str, str]:
    prefix = generation_prefix(expected.table, expected.generation)
    kept = {}
    for look in looks:
        before = expected.predecessor.get(look.replica)
        name = None if before is None else find(look, before)
        if name is not None and name.startswith(prefix):
            kept[look.replica] = name
    return kept
