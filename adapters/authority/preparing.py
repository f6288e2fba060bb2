"""A replica that is about to be admitted gets what the others have: every live table, under its recorded Keeper path.

What it bears under names that a late statement could use, or in the live table's place, is moved aside first, if it is
this platform's own by its Keeper path; anything else stops the admission. Nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...domain.names import predecessor_name
from ...domain.slot import Live, TargetSlot
from ...domain.tables import ReplicaLook, TableIdentity, TargetRef
from ..cluster.platform import ReplicatedPlatform
from ..cluster.statements import path_of
from .memory import Remembered
from .refusals import not_admitted


def prepare(platform: ReplicatedPlatform, remembered: Sequence[Remembered], new: Sequence[str]) -> list[str]:
    """Let every replica of ``new`` hold every slot's live table; one sentence for what was done. Raises DponeError."""
    done = []
    for slot in (known.slot for known in remembered):
        if slot.target is None:
            continue
        for look in platform.look(slot.target):
            if look.replica in new:
                done += _on_replica(platform, slot, slot.target, look)
    return done


def mismatches(platform: ReplicatedPlatform, slot: TargetSlot, names: Sequence[str]) -> list[str]:
    """One sentence for each of these replicas that does not hold the live table, or bears a candidate's name."""
    target, live = slot.target, slot.live
    if target is None:
        return []
    expected = _identity(live) if live is not None else None
    said = []
    for look in platform.look(target):
        if look.replica not in names:
            continue
        if not look.reachable:
            said.append(f"Replica {look.replica} does not answer.")
        elif look.tables.get(target.table) != expected:
            said.append(f"Replica {look.replica} does not hold the live table {target}.")
        elif _dangerous(look, target):
            said.append(f"Replica {look.replica} bears a candidate's name for {target}.")
    return said


def _on_replica(platform: ReplicatedPlatform, slot: TargetSlot, target: TargetRef, look: ReplicaLook) -> list[str]:
    live = slot.live
    done = [_moved_aside(platform, target, look, name) for name in _dangerous(look, target)]
    shown = look.tables.get(target.table)
    if live is None:
        if shown is not None:
            raise _foreign(look.replica, target)
        return done
    expected = _identity(live)
    if shown == expected:
        platform.synchronise(target.database, target.table)  # an earlier admission may have been cut short
        return done
    if shown is not None:
        done.append(_moved_aside(platform, target, look, target.table))
    held = next((name for name, identity in look.tables.items() if identity == expected), None)
    if held is not None:
        now = _aside(held) if held in _dangerous(look, target) else held
        platform.rename(look.replica, target.database, now, target.table)
        platform.synchronise(target.database, target.table)
        return [*done, f"Replica {look.replica} held the live table of {target} under another name; it was put back."]
    platform.rebuild(look.replica, target.database, target.table, live.definition, expected)
    return [*done, f"The live table of {target} was created on replica {look.replica} and synchronised."]


def _moved_aside(platform: ReplicatedPlatform, target: TargetRef, look: ReplicaLook, name: str) -> str:
    """Give a table of this platform a name that no statement was ever written for."""
    identity = look.tables[name]
    generation = _own_generation(identity, target.platform_id)
    if generation is None:
        raise _foreign(look.replica, target)
    aside = _aside(name) if name != target.table else f"{predecessor_name(target.table, generation)}_returned"
    if aside in look.tables:
        raise _foreign(look.replica, target)
    platform.rename(look.replica, target.database, name, aside)
    return f"An earlier table of {target} on replica {look.replica} was moved aside and kept."


def _aside(name: str) -> str:
    return f"{name}_retired_0"


def _dangerous(look: ReplicaLook, target: TargetRef) -> list[str]:
    """Names that a late swap of any generation could still use: candidates and arms."""
    prefix = f"__dpone_{target.table}_"
    return [
        name
        for name in look.tables
        if name.startswith(prefix) and "_retired_" not in name and name[len(prefix) + 33 :][:1] in ("a", "c")
    ]


def _own_generation(identity: TableIdentity, platform_id: str) -> str | None:
    path = path_of(platform_id, "")
    return identity.id.removeprefix(path) if identity.id.startswith(path) else None


def _identity(live: Live) -> TableIdentity:
    """One for all replicas: a generation's Keeper path does not depend on the replica."""
    identities: Mapping[str, TableIdentity] = live.identities
    return next(iter(identities.values()))


def _foreign(replica: str, target: TargetRef) -> Exception:
    return not_admitted(
        f"Replica {replica} holds a table under the name of {target}, or beside it, that this platform did not make.",
        "Move that table away yourself, then repeat the same command.",
    )
