"""The swap: looked before, recorded, sent once, and then only observed until it is proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ...domain import events as e
from ...domain.errors import DponeError, EngineFailed, ErrorCode
from ...domain.limits import EPOCHS_MAX, SETTLE_SECONDS
from ...domain.names import arm_name, candidate_name, predecessor_name, rebuilding_name_of
from ...domain.ports import Swap, SwapForm
from ...domain.publication import (
    Fence,
    Proven,
    Rebuild,
    Redispatch,
    Rename,
    Seal,
    Standing,
    Stop,
    ready_to_dispatch,
    settle,
)
from .attempt import Running
from .claiming import abandon_lost

_LOOKS_MAX = 20
_DISPATCHES_MAX = 3


def dispatch(running: Running) -> None:
    """Look at every replica, record the intent, send the statement once. Its outcome is left to settling."""
    generation, key = running.generation, running.request.key
    looks = running.ports.platform.look(key.target)
    expected = running.expectation()
    stop = ready_to_dispatch(looks, expected, generation.candidate)
    if stop is not None and stop.reason is Standing.LOST:
        abandon_lost(running)
        return
    if stop is not None:
        raise _stopped(running, stop)
    if missing_rows(running, generation.candidate):
        abandon_lost(running)
        return
    exchange = bool(expected.predecessor) and running.ports.platform.exchanges(key.database)
    running.append(
        [
            e.PublicationDispatched(
                at=running.now(),
                generation=generation.id,
                epoch=1,
                attempt=running.fence,
                candidate=generation.candidate,
                replicas=running.replicas,
                exchange=exchange,
                predecessor=expected.predecessor,
            )
        ]
    )
    if exchange:
        _send(running, SwapForm.EXCHANGE)
    else:
        _send(running, SwapForm.RENAME if expected.predecessor else SwapForm.FIRST)


def settle_publication(running: Running) -> None:
    """Bring a dispatched publication to its proof, by what is seen alone.

    Renames that are refused are tried again, since a replica may be without its Keeper for a moment; a replica that
    stays without it would make each try wait, and the run with it.
    """
    platform, key, clock = running.ports.platform, running.request.key, running.ports.clock
    exchanges = platform.exchanges(key.database)
    looked_after_seal = False
    dispatches = 0
    before, since = None, clock.monotonic()
    for _ in range(_LOOKS_MAX):
        looks = platform.look(key.target)
        fresh = candidate_name(key.table, running.generation.id, running.publication.epoch + 1, running.fence)
        settlement = settle(
            looks, running.expectation(), fresh, looked_after_seal=looked_after_seal, exchanges=exchanges
        )
        if settlement != before:
            before, since = settlement, clock.monotonic()
        elif clock.monotonic() - since > SETTLE_SECONDS:
            running.check_not_superseded()
            raise _stuck()
        match settlement:
            case Stop():
                raise _stopped(running, settlement)
            case Seal():
                _rename(running, settlement.renames)
                looked_after_seal = True
            case Fence():
                _rename(running, settlement.renames)
                looked_after_seal = False
            case Rebuild():
                _rebuild(running, settlement, fresh)
                looked_after_seal = False
            case Redispatch():
                dispatches += 1
                if dispatches > _DISPATCHES_MAX or running.publication.epoch >= EPOCHS_MAX:
                    break
                _redispatch(running, settlement, fresh)
                looked_after_seal = False
            case Proven():
                _check_rows(running, key.table)
                _prove(running, settlement)
                return
            case _:
                assert_never(settlement)
    running.check_not_superseded()
    raise DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        "The swap was sent and its outcome could not be brought to a proof.",
        safe="No row of the live table or of the new one was lost.",
        next="Repeat the same command.",
        cause=ErrorCode.PUBLICATION_UNKNOWN,
    )


def _send(running: Running, form: SwapForm, replicas: tuple[str, ...] = ()) -> None:
    key, generation, publication = running.request.key, running.generation.id, running.publication
    swap = Swap(
        database=key.database,
        table=key.table,
        candidate=publication.candidate,
        arm=arm_name(key.table, generation, publication.epoch, running.fence),
        predecessor=predecessor_name(key.table, generation),
        form=form,
        replicas=replicas,
    )
    running.counters.swaps_sent += 1
    try:
        running.ports.platform.swap(swap)
    except EngineFailed:
        return  # whatever the reply said, only what the replicas show counts


def _redispatch(running: Running, settlement: Redispatch, fresh: str) -> None:
    """Only to replicas that have not swapped, to each directly: one that has must never get another swap."""
    epoch, generation = running.publication.epoch + 1, running.generation.id
    if set(settlement.replicas) == set(running.replicas):  # else the rest holds it under the target's name already
        _check_rows(running, fresh)
    running.append(
        [
            e.PublicationFenced(
                at=running.now(),
                generation=generation,
                epoch=epoch,
                attempt=running.fence,
                candidate=fresh,
                replicas=settlement.replicas,
            ),
            e.PublicationDispatched(
                at=running.now(),
                generation=generation,
                epoch=epoch,
                attempt=running.fence,
                candidate=fresh,
                replicas=settlement.replicas,
                exchange=SwapForm.EXCHANGE in settlement.forms.values(),
                predecessor=running.publication.predecessor,
            ),
        ]
    )
    for form in SwapForm:
        lagging = tuple(replica for replica, needed in settlement.forms.items() if needed is form)
        if lagging:
            _send(running, form, lagging)


def missing_rows(running: Running, name: str) -> str | None:
    """The first replica whose table of the new generation has fewer rows than were staged there; None: all have them.

    A server may lose what it had, and still show the table: an old one that renames without its Keeper moves a table's
    files and forgets where to, and gives the rows up when it starts again.
    """
    staged = running.generation.rows or {}
    counted = running.ports.platform.row_count(running.request.key.database, name)
    fewest = min(staged.values(), default=0)
    return next((one for one in sorted(counted) if counted[one] < staged.get(one, fewest)), None)


def _check_rows(running: Running, name: str) -> None:
    """Refuse to publish, or to call proven, what is not there any more."""
    replica = missing_rows(running, name)
    if replica is None:
        return
    raise DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"Replica {replica} has fewer rows of the new generation than were staged there: the server lost some.",
        safe="The table that was live before is kept, under the target's name or as its predecessor.",
        next=f"dpone ops explain {running.request.operation}",
        cause=ErrorCode.PUBLICATION_UNKNOWN,
    )


def _rebuild(running: Running, settlement: Rebuild, fresh: str) -> None:
    """Under a name of its own until it is finished: what a cut rebuild leaves may lack rows."""
    generation, key, platform = running.generation, running.request.key, running.ports.platform
    making = rebuilding_name_of(fresh, key.table, generation.id)
    for replica in settlement.replicas:
        begun = settlement.unfinished.get(replica, making)
        if begun != making:
            platform.rename(replica, key.database, begun, making)
        identity = (generation.identities or {})[replica]
        platform.rebuild(replica, key.database, making, generation.definition, identity)
        platform.rename(replica, key.database, making, fresh)


def _prove(running: Running, settlement: Proven) -> None:
    generation = running.generation
    identities = running.identities()
    rows = max((generation.rows or {}).values(), default=0)
    running.append(
        [
            *_reduced(running),
            e.CommitProven(
                at=running.now(),
                generation=generation.id,
                attempt=running.fence,
                identities=identities,
                sealed=settlement.sealed,
            ),
        ],
        [
            e.GenerationPublished(
                at=running.now(),
                generation=generation.id,
                operation=running.request.operation,
                run_id=running.request.key.run_id,
                rows=rows,
                definition=generation.definition,
                identities=identities,
                sealed=settlement.sealed,
            )
        ],
    )
    running.counters.final_rows = rows


def _reduced(running: Running) -> list[e.Event]:
    """What was excluded from the platform since, so that the proof speaks of every replica that is left."""
    excluded = tuple(replica for replica in running.operation.inventory if replica not in running.replicas)
    return [e.InventoryReduced(at=running.now(), attempt=running.fence, excluded=excluded)] if excluded else []


def _rename(running: Running, renames: Sequence[Rename]) -> None:
    for rename in renames:
        try:
            running.ports.platform.rename(rename.replica, running.request.key.database, rename.old, rename.new)
        except EngineFailed:
            continue  # the next look tells what became of it


def _stuck() -> DponeError:
    """Only renames are tried again and again: every other step changes what is seen, or fails by itself."""
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"The swap was sent, and a replica has refused to rename a table for {SETTLE_SECONDS:.0f} seconds.",
        safe="No row of the live table or of the new one was lost.",
        next="Repeat the same command once every replica takes writes (on a cluster: reaches its Keeper).",
        cause=ErrorCode.REPLICA_UNREACHABLE,
    )


def _stopped(running: Running, stop: Stop) -> DponeError:
    running.check_not_superseded()
    key = running.request.key
    shown = ", ".join(f"{replica}: {standing}" for replica, standing in sorted(stop.standings.items()))
    shown += _reported(running)
    if stop.reason is Standing.FOREIGN:
        return DponeError(
            ErrorCode.FOREIGN_TARGET,
            f"The target {key.target} or a table beside it is not what this ledger knows ({shown}).",
            safe="Nothing was touched; every table is as it was found.",
            next=f"dpone ops explain {running.request.operation}",
        )
    unreachable = stop.reason is Standing.UNREACHABLE
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"A replica does not answer ({shown})."
        if unreachable
        else f"The new generation's table is under no name ({shown}).",
        safe="Everything was left in place.",
        next="Repeat the same command." if unreachable else f"dpone ops explain {running.request.operation}",
        cause=ErrorCode.REPLICA_UNREACHABLE if unreachable else ErrorCode.PUBLICATION_UNKNOWN,
    )


def _reported(running: Running) -> str:
    """What the servers' own reports add, for the person who reads the sentence."""
    publication = running.operation.publication
    if publication is None:
        return ""
    reports = running.ports.platform.reported(publication.candidate)
    return "".join(f"; {replica} reported: {report}" for replica, report in sorted(reports.items()))
