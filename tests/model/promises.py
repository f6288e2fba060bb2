"""The promises of the protocol as checks over the world: after every call, at every effect, at every ending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dpone.domain import events as e
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.names import generation_of
from dpone.domain.operation import AFTER_COMMIT, BEFORE_DISPATCH, Operation, State
from dpone.domain.ports import StreamAppend, Swap
from dpone.domain.tables import TableIdentity

from .scheduling import Crashed
from .world import SLOT, TARGET, Table, Violation, World

if TYPE_CHECKING:
    from .processes import Process

HOLDING = BEFORE_DISPATCH | AFTER_COMMIT | {State.DISPATCHED}


def check_world(world: World) -> None:
    """What holds at every moment."""
    _check_holder(world)
    _check_guard(world)
    for replica in world.admitted:
        if not world.meddled:
            _check_live(world, replica)
            _check_nothing_lost(world, replica)


def _check_holder(world: World) -> None:
    """One owner per target: the operations under way are exactly the slot's holder."""
    held = {str(operation) for operation, state in world.ledger.operations.items() if _holds(state)}
    holder = world.ledger.slot.holder
    expect(held == ({holder.operation} if holder else set()), "operations under way are not the slot's holder")


def _holds(operation: Operation) -> bool:
    final = operation.state is State.FAILED and operation.failure is not None and operation.failure.final
    return operation.state in HOLDING or final


def _check_guard(world: World) -> None:
    """A reader's guard belongs to the holder, and only while it observes."""
    slot, holder = world.ledger.slot, _holder(world)
    if slot.guard is None:
        return
    expect(holder is not None and slot.holder is not None, "a guard is held and nobody holds the slot")
    expect(slot.holder is None or slot.guard.operation == slot.holder.operation, "another operation's guard is held")
    pending = holder is not None and holder.state in (State.TARGET_PENDING, State.OBSERVED)
    expect(pending, "a guard is held by an operation that does not observe")


def _check_live(world: World, replica: str) -> None:
    """The live table is the proven generation; between dispatch and proof it may be the one or the other."""
    live, holder = world.live(replica), _holder(world)
    expect(live is None or live.filled, "a half-filled table is live")
    expect(live is None or live.rows > 0, "a table is live whose gate failed")
    proven = world.ledger.slot.live
    expected: set[TableIdentity | None] = {None if proven is None else proven.identities.get(replica)}
    if replica in world.wiped:
        expected.add(None)
    if holder is not None and holder.state is State.DISPATCHED and holder.generation is not None:
        expected.add((holder.generation.identities or {}).get(replica))
        if holder.publication is not None and not (world.exchanges and replica in holder.publication.predecessor):
            expected.add(None)  # a rename was cut: the one moment without a table, which the next process ends
    found = None if live is None else live.identity
    expect(found in expected, f"the live table on {replica} is not what the ledger proved")


def _check_nothing_lost(world: World, replica: str) -> None:
    """Until the proof both tables exist; from staging on the candidate does."""
    holder = _holder(world)
    if holder is None or holder.generation is None or holder.generation.identities is None:
        return
    if replica in world.wiped | world.bereft or replica not in holder.generation.identities:
        return
    there = set(world.holding(replica))
    expect(holder.generation.identities[replica] in there, f"the staged generation is gone from {replica}")
    if holder.state is State.DISPATCHED and holder.publication is not None:
        before = holder.publication.predecessor.get(replica)
        expect(before is None or before in there, f"the predecessor is gone from {replica} before the proof")


def check_open(process: Process) -> None:
    """No read of the source once a capsule is written, except for a candidate that was lost and abandoned."""
    operation = process.world.ledger.operation(process.request.key)
    sealed = operation.generation
    late = sealed is not None and sealed.core is not None and sealed.id == process.retry_of_capsule
    expect(not late, "the source was opened after the capsule was written")
    current = process.fence == operation.attempt and operation.state is not State.RETIRED
    expect(operation.state in BEFORE_DISPATCH or not current, "the source was opened too late")


def check_drop(process: Process, replica: str, table: Table) -> None:
    """Nothing that is live, proven or still needed is dropped, and nothing foreign ever."""
    world, holder = process.world, _holder(process.world)
    expect(not table.foreign, "a foreign table was dropped")
    expect(table is not world.live(replica), "the live table was dropped")
    proven = world.ledger.slot.live
    expect(proven is None or table.identity != proven.identities.get(replica), "the proven generation was dropped")
    if holder is None or holder.generation is None:
        return
    staged = (holder.generation.identities or {}).get(replica)
    expect(table.identity != staged, "the holder's staged candidate was dropped")
    if holder.state is State.DISPATCHED and holder.publication is not None:
        before = holder.publication.predecessor.get(replica)
        expect(table.identity != before, "the predecessor was dropped before the proof")


def check_touch(process: Process, name: str, replicas: Iterable[str]) -> None:
    """A process that saw a foreign table under this name sends nothing that touches it."""
    for replica in replicas:
        seen = process.seen.get(replica, {}).get(name)
        table = process.world.tables[replica].get(name)
        known = table is not None and table.foreign and table.identity == seen
        expect(not known, "a foreign table was touched knowingly")


def check_send(process: Process, swap: Swap, replicas: Iterable[str]) -> None:
    """A replica that was seen to hold the new generation is never sent another swap."""
    new = process.world.made.get(generation_of(swap.candidate) or "")
    for replica in replicas:
        live = process.seen.get(replica, {}).get(swap.table)
        expect(live is None or live != new, "a replica that has committed was sent another swap")


def check_destination(process: Process, name: str) -> None:
    """No two attempts ever use one name as a destination (a predecessor's name belongs to its generation)."""
    if name.endswith("_pred"):
        return
    first = process.world.destinations.setdefault(name, process.name)
    expect(first == process.name, "two attempts used one name as a destination")


def check_append(process: Process, appends: Sequence[StreamAppend]) -> None:
    """What belongs together is one append, and an attempt's events bear the fence that it appended itself."""
    for event in (event for item in appends for event in item.events):
        if isinstance(event, e.AttemptStarted | e.ReplayValidated):
            continue
        fence = getattr(event, "attempt", process.appended_fence)
        expect(fence == process.appended_fence, f"{type(event).__name__} bears another attempt's fence")
        if isinstance(event, e.CommitProven):
            _check_proof(process, event)
    kinds = {type(event) for item in appends for event in item.events}
    for needs, also in (
        (e.OperationAdmitted, {e.AttemptStarted, e.SlotClaimed}),
        (e.OperationReopened, {e.AttemptStarted, e.SlotClaimed}),
        (e.CommitProven, {e.GenerationPublished}),
        (e.ObservationAbandoned, {e.ReaderGuardReleased}),
        (e.OperationCompleted, {e.SlotVacated}),
        (e.PublicationFenced, {e.PublicationDispatched}),
        (e.ReplayValidated, {e.AttemptStarted}),
        (e.SourceObserved, {e.CandidateStaged}),
        (e.OperationFailed, {e.SlotVacated}),
    ):
        expect(needs not in kinds or also <= kinds, f"{needs.__name__} was appended without what belongs to it")


def _check_proof(process: Process, event: e.CommitProven) -> None:
    """Every admitted replica was seen to hold the new generation and still does, by exactly one swap that counts."""
    world = process.world
    expect(set(event.identities) == set(world.admitted), "a proof does not speak of every admitted replica")
    for replica, identity in event.identities.items():
        seen = process.seen.get(replica, {})
        expect(seen.get(TARGET.table) == identity, f"{replica} was not seen to hold the generation")
        if world.meddled or replica in world.wiped:
            continue
        live = world.live(replica)
        expect(live is not None and live.identity == identity, f"proven, and {replica} does not hold the generation")
        swaps = world.effective[replica, event.generation.replace("-", "")]
        expect(swaps == 1, f"proven after {swaps} effective swaps on {replica}")


def check_ending(process: Process) -> None:
    """Success only with evidence; every refusal is true."""
    error = process.stepped.error
    if error is None:
        _check_success(process)
    elif isinstance(error, DponeError):
        _check_refusal(process, error)
    elif not isinstance(error, Crashed):
        raise error


def _check_success(process: Process) -> None:
    """COMPLETE, a receipt of this very attempt, and no guard of this operation."""
    world, fence = process.world, process.fence
    events = world.ledger.events(process.request.key)
    completed = [event for event in events if isinstance(event, e.OperationCompleted) and event.attempt == fence]
    replayed = [event for event in events if isinstance(event, e.ReplayValidated) and event.attempt == fence]
    receipts = [event for event in events if isinstance(event, e.ReceiptAccepted) and event.attempt == fence]
    expect(bool(completed or replayed), "success without completion by this attempt")
    durable = process.running is not None and process.running.operation.process.sink.durable
    expect(bool(replayed) or not durable or bool(receipts), "success without a receipt of this attempt")
    guard = world.ledger.slot.guard
    expect(guard is None or guard.operation != process.request.operation, "success while a guard is held")


def _check_refusal(process: Process, error: DponeError) -> None:
    world = process.world
    operation = world.ledger.operation(process.request.key)
    expect(error.code is not ErrorCode.INTERNAL, f"a defect was reported: {error.what}")
    match error.code:
        case ErrorCode.SUPERSEDED:
            newer = process.fence is not None and operation.attempt > process.fence
            expect(newer, "superseded, and no newer attempt is there")
            done = any(
                isinstance(event, e.OperationCompleted | e.ReplayValidated) and event.attempt == process.fence
                for event in world.ledger.events(process.request.key)
            )
            expect(not done, "an attempt that completed called itself superseded")
        case ErrorCode.TARGET_BLOCKED if "held_by" in error.known:
            expect(world.ledger.slot.held is not None, "a person stopped new claims, and nobody did")
        case ErrorCode.TARGET_BLOCKED:
            named = error.known["holder"]["operation_id"]
            expect(named != process.request.operation, "an operation is blocked by itself")
            expect(named in process.holders | _claims_since(process), "blocked by an operation that did not hold it")
        case ErrorCode.RETIRED:
            expect(operation.state is State.RETIRED, "retired, and it is not")
        case ErrorCode.FOREIGN_TARGET | ErrorCode.NOT_ADMITTED:
            expect(world.meddled or world.lost_tables, "a foreign table was reported, and nobody meddled")
        case ErrorCode.EVIDENCE_MISMATCH:
            live = world.ledger.slot.live
            other = live is not None and live.operation != process.request.operation
            gone = set(operation.inventory).isdisjoint({*process.replicas} & {*world.admitted})
            expect(
                other or gone or world.meddled or world.lost_tables,
                "a mismatch was reported, and no successor published",
            )
        case ErrorCode.EVIDENCE_INVALID:
            expect(operation.state is State.FAILED, f"invalid evidence was reported: {error.what}")
        case ErrorCode.IDENTITY_CONFLICT:
            expect(operation.configuration_digest != process.request.configuration_digest, "a conflict without one")
        case _:
            pass


def _claims_since(process: Process) -> set[str]:
    events = process.world.ledger.streams.get(SLOT, [])[process.slot_version :]
    return {event.operation for event in events if isinstance(event, e.SlotClaimed)}


def _holder(world: World) -> Operation | None:
    holder = world.ledger.slot.holder
    if holder is None:
        return None
    return next((o for i, o in world.ledger.operations.items() if str(i) == holder.operation), None)


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Violation(what)
