"""The end: a receipt of this attempt, the guard's verified release, completion; and the validated replay."""

from __future__ import annotations

from ...domain import events as e
from ...domain.errors import DponeError, ErrorCode
from .attempt import Running, defect
from .claiming import attempt_started, check_inventory


def accept_receipt(running: Running) -> None:
    """Validate the live generation now, in this process, and record it."""
    _validate_live(running)
    generation = running.generation
    running.append(
        [
            e.ReceiptAccepted(
                at=running.now(),
                receipt=running.ports.ids.new(),
                attempt=running.fence,
                generation=generation.id,
                core_digest=generation.core_digest or "",
                identities=running.identities(),
            )
        ]
    )


def release_guard(running: Running) -> None:
    """Say in both streams that no reader is left."""
    guard = running.operation.guard
    if guard is None:
        raise defect("there is no guard to release")
    event = e.ReaderGuardReleased(
        at=running.now(), guard=guard, operation=running.request.operation, attempt=running.fence
    )
    running.append([event], [event])


def complete(running: Running) -> None:
    """Complete, vacate the slot, and list the predecessors that are no longer kept."""
    if running.slot.guard is not None:
        raise DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            "A reader guard is still held.",
            safe="The new table is live.",
            next="Repeat the same command.",
        )
    generation = running.generation
    receipt = running.operation.receipt
    completed = e.OperationCompleted(
        at=running.now(),
        attempt=running.fence,
        generation=generation.id,
        receipt=receipt.receipt if receipt is not None else None,
    )
    vacated = e.SlotVacated(at=running.now(), operation=running.request.operation, live=generation.id)
    running.append([completed], [vacated, *_retirements(running)])


def validate_replay(running: Running) -> None:
    """Done before: see that the generation is still live, then record attempt and receipt in both streams at once."""
    check_inventory(running)
    running.ports.platform.acquire()
    _validate_live(running)
    generation = running.generation
    started = attempt_started(running)
    validated = e.ReplayValidated(
        at=running.now(),
        operation=running.request.operation,
        attempt=started.attempt,
        generation=generation.id,
        receipt=running.ports.ids.new(),
        core_digest=generation.core_digest or "",
        identities=running.identities(),
    )
    running.append([started, validated], [validated])
    running.started()


def _retirements(running: Running) -> list[e.Event]:
    surplus = running.slot.kept[running.invocation.keep_generations :]
    return [
        e.RetirementOpened(
            at=running.now(),
            name=name,
            role=e.Role.PREDECESSOR,
            generation=kept.generation,
            identities={replica: kept.identities[replica] for replica, held in kept.names.items() if held == name},
        )
        for kept in surplus
        if not kept.adopted  # somebody else made it: only a person drops it
        for name in sorted(set(kept.names.values()))
    ]


def _validate_live(running: Running) -> None:
    key = running.request.key
    expected = running.identities()
    if not expected:
        raise DponeError(
            ErrorCode.EVIDENCE_MISMATCH,
            "None of the replicas that this operation published to is admitted any more.",
            safe="Nothing was read or changed.",
            next="dpone platform status",
        )
    for look in running.ports.platform.look(key.target):
        if look.replica not in expected:
            continue  # admitted later: prepared with the generation that was live then
        if not look.reachable:
            running.check_view_is_current()
            raise DponeError(
                ErrorCode.EVIDENCE_INCOMPLETE,
                f"Replica {look.replica} does not answer, so the live generation could not be validated.",
                safe="Nothing was changed.",
                next="Repeat the same command.",
                cause=ErrorCode.REPLICA_UNREACHABLE,
            )
        if look.tables.get(key.table) != expected.get(look.replica):
            running.check_view_is_current()
            raise DponeError(
                ErrorCode.EVIDENCE_MISMATCH,
                f"The live table {key.target} is not the generation that this operation published.",
                safe="Nothing was read or changed; the table is as it was found.",
                next=f"dpone ops explain {running.request.operation}",
            )
