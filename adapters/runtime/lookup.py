"""Looking operations up in the ledger, for commands that only show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING
from uuid import UUID

from ...domain import operation as operations
from ...domain import slot as slots
from ...domain.errors import DponeError, ErrorCode
from ...domain.events import AttemptStarted, Event, OperationAdmitted
from ...domain.explain import next_for, same_request
from ...domain.identity import slot_id
from ...domain.operation import Operation
from ...domain.slot import TargetSlot
from ...domain.steps import Step

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

_PREFIX_MIN = 8


@dataclass(frozen=True, slots=True)
class Found:
    """An operation with its events, its target's slot, and what the same command would do next."""

    stream: UUID
    events: tuple[Event, ...]
    operation: Operation
    slot: TargetSlot
    next: Step

    @property
    def task(self) -> AttemptStarted | None:
        """The last attempt's start: who, and which task."""
        return next((event for event in reversed(self.events) if isinstance(event, AttemptStarted)), None)


def all_operations(ledger: EventLedger) -> Iterator[Found]:
    """Every operation in the order in which they were admitted."""
    for stream in ledger.streams():
        found = _found(ledger, stream)
        if found is not None:
            yield found


def one_operation(ledger: EventLedger, text: str) -> Found:
    """The operation with this id, or with this unique prefix of at least 8 characters. Raises DponeError."""
    wanted = text.lower().replace("-", "")
    if len(wanted) < _PREFIX_MIN or not all(character in "0123456789abcdef" for character in wanted):
        raise _refused("An operation is named by its id or by at least 8 characters of it.")
    matching = [stream for stream in ledger.streams() if stream.hex.startswith(wanted)]
    found = [item for item in (_found(ledger, stream) for stream in matching) if item is not None]
    if not found:
        raise _refused("This ledger has no such operation.")
    if len(found) > 1:
        raise _refused(f"{len(found)} operations begin like this; give more of the id.")
    return found[0]


def _found(ledger: EventLedger, stream: UUID) -> Found | None:
    events = tuple(item.event for item in ledger.read(stream))
    if not events or not isinstance(events[0], OperationAdmitted):
        return None
    operation = operations.fold(events)
    target = events[0].key.target
    slot = reduce(slots.evolve, (item.event for item in ledger.read(slot_id(target))), TargetSlot())
    holder = None
    if slot.holder is not None and slot.holder.operation != str(stream):
        holder = operations.fold(item.event for item in ledger.read(UUID(slot.holder.operation)))
    step = next_for(operation, slot, holder, same_request(operation))
    return Found(stream, events, operation, slot, step)


def _refused(what: str) -> DponeError:
    return DponeError(ErrorCode.REQUEST_INVALID, what, next="dpone ops list")
