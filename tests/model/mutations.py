"""Deliberate mistakes in the decisions and in what carries them out, to see what each rule is for.

Each takes one rule away, as somebody might who thinks that it is not needed; ``test_mutations`` demands that the
search refutes every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest

from dpone.adapters.runtime import attempt, claiming, publishing
from dpone.domain import names, publication
from dpone.domain.ports import StreamAppend, Swap, SwapForm
from dpone.domain.publication import Expectation, Proven, Rename, Seal, Settlement, Standing
from dpone.domain.tables import ReplicaLook, TableIdentity

from . import statements

Patch = pytest.MonkeyPatch


def obvious_rename(patch: Patch) -> None:
    """Two steps in the obvious order: ``table TO predecessor, candidate TO table``."""

    def steps(swap: Swap) -> list[tuple[str, str]]:
        moved = [(swap.table, swap.predecessor), (swap.candidate, swap.table)]
        return moved[1:] if swap.form is SwapForm.FIRST else moved

    patch.setattr(statements, "renames", steps)


def no_seal(patch: Patch) -> None:
    """What is left under a candidate's name stays there."""
    real = publication._seal

    def seal(*given: Any, looked_after_seal: bool) -> Settlement:
        sealing = real(*given, looked_after_seal=looked_after_seal)
        renames = isinstance(sealing, Seal) and bool(sealing.renames)
        return (Proven({}) if looked_after_seal else Seal(())) if renames else sealing

    patch.setattr(publication, "_seal", seal)


def no_second_look(patch: Patch) -> None:
    """After sealing, what must be there now is taken for granted, and nothing is counted either."""
    real, remembered = publication.settle, list[ReplicaLook]()

    def settle(looks: Sequence[ReplicaLook], *given: Any, looked_after_seal: bool, **named: Any) -> Settlement:
        known = remembered if looked_after_seal else looks
        settlement = real(known, *given, looked_after_seal=looked_after_seal, **named)
        if isinstance(settlement, Seal):
            remembered[:] = [_renamed(look, settlement.renames) for look in known]
        return settlement

    patch.setattr(publishing, "settle", settle)
    patch.setattr(publishing, "_check_rows", lambda running, name: None)


def _renamed(look: ReplicaLook, renames: Sequence[Rename]) -> ReplicaLook:
    new = {rename.old: rename.new for rename in renames if rename.replica == look.replica}
    return ReplicaLook(look.replica, tables={new.get(name, name): held for name, held in look.tables.items()})


def shared_names(patch: Patch) -> None:
    """Two attempts use the same candidate names."""
    patch.setattr(
        publishing,
        "candidate_name",
        lambda table, generation, epoch, _: names.candidate_name(table, generation, epoch, 1),
    )
    patch.setattr(
        publishing, "arm_name", lambda table, generation, epoch, _: names.arm_name(table, generation, epoch, 1)
    )


def to_all_again(patch: Patch) -> None:
    """The next epoch goes ON CLUSTER as the first one did."""
    real = publishing._send
    patch.setattr(publishing, "_send", lambda running, form, replicas=(): real(running, form))


def no_fence(patch: Patch) -> None:
    """The statement is sent again under the name that the first one knows."""
    patch.setattr(
        publishing, "candidate_name", lambda table, generation, *_: names.candidate_name(table, generation, 1, 1)
    )


def by_name(patch: Patch) -> None:
    """Where the candidate's name is free, it must have been swapped."""

    def classify(look: ReplicaLook, expected: Expectation) -> Standing:
        if not look.reachable:
            return Standing.UNREACHABLE
        candidates = [n for n in look.tables if names.is_candidate_name(n, expected.table, expected.generation)]
        return Standing.PREDECESSOR if candidates else Standing.DESIRED

    patch.setattr(publication, "classify", classify)


def _classified(change: Callable[[Standing], Standing]) -> Callable[[Patch], None]:
    def mutate(patch: Patch) -> None:
        real = publication.classify
        patch.setattr(publication, "classify", lambda look, expected: change(real(look, expected)))

    return mutate


def one_replica_less(patch: Patch) -> None:
    """The last replica will follow by itself."""
    real = publication.settle

    def settle(looks: Sequence[ReplicaLook], expected: Expectation, *given: Any, **named: Any) -> Settlement:
        spoken = sorted(expected.new)[:-1] if len(expected.new) > 1 else sorted(expected.new)
        new = {replica: expected.new[replica] for replica in spoken}
        fewer = Expectation(expected.table, expected.generation, new, expected.predecessor)
        return real(looks, fewer, *given, **named)

    patch.setattr(publishing, "settle", settle)


def unfinished_counts(patch: Patch) -> None:
    """A lost table that is being made again is the generation already."""
    patch.setattr(publication, "_is_unfinished", lambda name, expected: False)


def stale_inventory(patch: Patch) -> None:
    """The replicas that the process was wired to are the ones that count."""
    patch.setattr(attempt.Running, "admitted", property(lambda running: running.ports.platform.replicas))


def past_the_admitted(patch: Patch) -> None:
    """Nobody asks for replicas that were admitted since the process started."""
    patch.setattr(claiming, "check_inventory", lambda running: None)


def sent_twice(patch: Patch) -> None:
    """After a reply that was lost the statement is sent once more."""
    real = publishing._send

    def send(running: attempt.Running, form: SwapForm, replicas: tuple[str, ...] = ()) -> None:
        real(running, form, replicas)
        real(running, form, replicas)

    patch.setattr(publishing, "_send", send)


def dropped_by_name(patch: Patch) -> None:
    """What bears the name of a table to be dropped is that table."""
    real = claiming.work_off

    def work_off(running: attempt.Running, step: Any) -> None:
        retirement = running.slot.retirements[step.name]
        looks = running.ports.platform.look(running.request.key.target)
        found: Mapping[str, TableIdentity] = {
            look.replica: look.tables[step.name] for look in looks if step.name in look.tables
        }
        object.__setattr__(retirement, "identities", found)
        real(running, step)

    patch.setattr("dpone.adapters.runtime.loop.work_off", work_off)


def at_the_head(patch: Patch) -> None:
    """The slot's events are appended wherever the slot stands by now."""
    real = attempt.Running.append

    def append(running: attempt.Running, events: Any, slot_events: Any = (), others: Any = ()) -> None:
        ledger, slot = running.ports.ledger, running.slot_stream

        def store(appends: Sequence[StreamAppend]) -> None:
            moved = [
                StreamAppend(a.stream, len(ledger.read(slot)), a.events) if a.stream == slot else a for a in appends
            ]
            ledger.append(moved)

        ports = running.ports
        running.ports = _Storing(ports, store)  # type: ignore[assignment]
        try:
            real(running, events, slot_events, others)
        finally:
            running.ports = ports

    patch.setattr(attempt.Running, "append", append)


class _Storing:
    """Ports whose ledger appends by another function."""

    def __init__(self, ports: Any, store: Callable[[Sequence[StreamAppend]], None]) -> None:
        self.ledger = self
        self.read, self.append, self.clock, self.platform = ports.ledger.read, store, ports.clock, ports.platform


MUTATIONS: Final[Mapping[str, Callable[[Patch], None]]] = {
    "two-step rename in the obvious order": obvious_rename,
    "no seal": no_seal,
    "no second look": no_second_look,
    "candidate names reused between attempts": shared_names,
    "redispatch ON CLUSTER to all": to_all_again,
    "redispatch without a fence": no_fence,
    "classify by name instead of identity": by_name,
    "LOST treated as MISSING": _classified(lambda seen: Standing.MISSING if seen is Standing.LOST else seen),
    "FOREIGN treated as the predecessor": _classified(
        lambda seen: Standing.PREDECESSOR if seen is Standing.FOREIGN else seen
    ),
    "UNREACHABLE treated as DESIRED": _classified(
        lambda seen: Standing.DESIRED if seen is Standing.UNREACHABLE else seen
    ),
    "proof without one replica": one_replica_less,
    "an unfinished rebuild counts": unfinished_counts,
    "an excluded replica counts": stale_inventory,
    "an admitted replica does not count": past_the_admitted,
    "sent twice": sent_twice,
    "dropped by name instead of identity": dropped_by_name,
    "slot append at the head": at_the_head,
}
