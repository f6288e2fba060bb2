"""What one fresh, undisturbed process must come to, told from the world alone, before it starts."""

from __future__ import annotations

from dpone.domain.errors import ErrorCode
from dpone.domain.names import is_rebuilding_name
from dpone.domain.operation import AFTER_COMMIT, Operation, State
from dpone.domain.steps import Request

from .world import TARGET, World

Ending = ErrorCode | None
SUCCESS: frozenset[Ending] = frozenset({None})
STRANGE: frozenset[Ending] = frozenset({ErrorCode.FOREIGN_TARGET, ErrorCode.NOT_ADMITTED})
UNLIKE: frozenset[Ending] = frozenset({ErrorCode.EVIDENCE_MISMATCH})
LOST: frozenset[Ending] = frozenset({ErrorCode.EVIDENCE_INCOMPLETE})


def expected(world: World, request: Request) -> frozenset[Ending]:
    """The endings that are true. All replicas answer, and no statement is under way."""
    operation = world.ledger.operation(request.key)
    holder = world.ledger.slot.holder
    if operation.state is State.RETIRED:
        return frozenset({ErrorCode.RETIRED})
    if holder is not None and holder.operation != request.operation and operation.state in _OWN_CLAIM:
        return _beside_a_holder(world, request)
    if operation.state is State.DISPATCHED:
        return _settled(world, operation)
    if operation.state in AFTER_COMMIT:
        unproven = operation.process.sink.durable and not _is_live(world, operation)
        return UNLIKE | LOST if unproven else SUCCESS  # without a receipt nothing is looked at again
    if operation.state is State.COMPLETE and operation.process.sink.durable:
        return SUCCESS if _is_last(world, operation) and _is_live(world, operation) else UNLIKE
    return SUCCESS if _known(world) else STRANGE


_OWN_CLAIM = frozenset({State.NEW, State.FAILED, State.COMPLETE})


def _beside_a_holder(world: World, request: Request) -> frozenset[Ending]:
    """Blocked; or it displaces what has not dispatched, as a later run of the same dag and process."""
    blocked: frozenset[Ending] = frozenset({ErrorCode.TARGET_BLOCKED})
    holder = world.ledger.slot.holder
    later = holder is not None and (holder.dag_id, holder.process) == (request.key.dag_id, request.key.process)
    return blocked | SUCCESS | STRANGE if later else blocked


def _settled(world: World, operation: Operation) -> frozenset[Ending]:
    generation, publication = operation.generation, operation.publication
    assert generation is not None
    assert publication is not None
    new, before = generation.identities or {}, publication.predecessor
    replicas = [replica for replica in operation.inventory if replica in world.admitted]
    for replica in replicas:
        live = world.live(replica)
        if live is not None and live.identity not in (new[replica], before.get(replica)):
            return STRANGE
    stranger = any(table.foreign for replica in replicas for table in world.tables[replica].values())
    copies = [
        table
        for replica in world.replicas
        for table in world.tables[replica].values()
        if table.identity in new.values()
    ]
    held = [
        table.identity == new[replica] and not is_rebuilding_name(name, TARGET.table, generation.id)
        for replica in replicas
        for name, table in world.tables[replica].items()
    ]
    if not any(held) or not any(table.filled for table in copies):
        return LOST
    return SUCCESS | STRANGE | LOST if stranger else SUCCESS


def _is_live(world: World, operation: Operation) -> bool:
    generation = operation.generation
    known = {} if generation is None else generation.identities or {}
    replicas = [replica for replica in operation.inventory if replica in world.admitted]
    tables = [(replica, world.live(replica)) for replica in replicas]
    return bool(replicas) and all(table is not None and table.identity == known[r] for r, table in tables)


def _is_last(world: World, operation: Operation) -> bool:
    live = world.ledger.slot.live
    return live is not None and operation.generation is not None and live.generation == operation.generation.id


def _known(world: World) -> bool:
    """The target is what the ledger proved, on every admitted replica."""
    live = world.ledger.slot.live
    for replica in world.admitted:
        table = world.live(replica)
        found = None if table is None else table.identity
        if found != (None if live is None else live.identities.get(replica)):
            return False
    return True
