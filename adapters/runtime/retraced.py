"""One operation's events with their places in the ledger, and those of whoever else had its target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from ...domain.errors import ErrorCode, LedgerFailed
from ...domain.events import SlotClaimed
from ...domain.identity import slot_id
from ...domain.retracing import Moment
from ...domain.tables import TargetRef

if TYPE_CHECKING:
    from ...ledger.store import EventLedger


def moments_of(ledger: EventLedger, operation: UUID, target: TargetRef) -> tuple[Moment, ...]:
    """The events of the operation, of its target's slot and of every holder of that, in ledger order.

    Every chain is verified from its first event. Raises LedgerFailed.
    """
    slot = slot_id(target)
    claims = [item.event for item in ledger.read(slot) if isinstance(item.event, SlotClaimed)]
    streams = {operation, slot, *(UUID(claim.operation) for claim in claims)}
    return tuple(sorted(_placed(ledger, streams), key=lambda moment: moment.position))


def _placed(ledger: EventLedger, streams: set[UUID]) -> Iterator[Moment]:
    verified = {stream: ledger.read(stream) for stream in streams}
    ids = {stream.hex: stream for stream in streams}
    from ...ledger.chain import ChainBroken
    from ...ledger.store import stored_event

    for row in ledger.raw_rows():
        stream = ids.get(row.originator_id) if isinstance(row.originator_id, str) else None
        if stream is None:
            continue
        try:
            stored = stored_event(row)
            append = ledger.mapper.check(stream, stored).append_id
        except ChainBroken:
            raise LedgerFailed(
                ErrorCode.EVIDENCE_INVALID,
                f"The event at position {row.position} of the ledger is not what was once appended.",
                next="dpone audit verify",
            ) from None
        if stored.originator_version <= len(verified[stream]):  # others were appended since
            yield Moment(row.position, append, verified[stream][stored.originator_version - 1])
