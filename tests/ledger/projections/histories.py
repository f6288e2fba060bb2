"""Histories to project: lives of operations from the domain's examples, and what the model's processes append."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dpone.domain import events as e
from dpone.domain.identity import OperationKey, operation_id, slot_id
from dpone.domain.operation import State
from dpone.domain.ports import StreamAppend
from dpone.ledger.store import EventLedger
from tests.domain import examples as x
from tests.model.commands import command
from tests.model.processes import Process
from tests.model.world import MemoryLedger, World

LIFE = x.UNTIL[State.COMPLETE][1:]
"""What follows an admission, until completion."""
EVENTS_A_LIFE = 1 + len(LIFE) + 4


def key(table: str, run_id: str) -> OperationKey:
    return OperationKey("night", run_id, "load", "platform-1", "sales", table)


def life(named: OperationKey, slot_version: int = 0) -> Iterator[tuple[StreamAppend, ...]]:
    """One operation's appends from its claim to its completion, the slot's events with them."""
    operation, slot = operation_id(named), slot_id(named.target)
    opened = (e.SlotOpened(at=x.AT, target=named.target),) if slot_version == 0 else ()
    yield (
        StreamAppend(operation, 0, (x.admitted(named), LIFE[0])),
        StreamAppend(slot, slot_version, (*opened, x.claimed(named))),
    )
    for version, event in enumerate(LIFE[1:-1], 2):
        yield (StreamAppend(operation, version, (event,)),)
    ends = (x.published(key=named), x.vacated(named))
    yield (
        StreamAppend(operation, len(LIFE), LIFE[-1:]),
        StreamAppend(slot, slot_version + len(opened) + 1, ends),
    )


def append_lives(ledger: EventLedger, table: str, count: int) -> None:
    """So many runs of one target, one after the other."""
    version = 0
    for number in range(count):
        for appends in life(key(table, f"run-{number}"), version):
            ledger.append(appends)
        version += 4 if version == 0 else 3


@dataclass(slots=True)
class RecordingLedger(MemoryLedger):
    """The model's ledger, which also keeps what was appended in its order."""

    appended: list[tuple[StreamAppend, ...]] = field(default_factory=list)

    def append(self, appends: Sequence[StreamAppend]) -> None:
        MemoryLedger.append(self, appends)
        self.appended.append(tuple(appends))


@dataclass(frozen=True, slots=True)
class Move:
    """A command that starts, makes so many calls, and is killed or runs to its end."""

    key: str
    flavour: str
    calls: int
    killed: bool


def model_history(moves: Sequence[Move]) -> list[tuple[StreamAppend, ...]]:
    """What the real loop appends when these commands run, each beside the one before it that may still be under way."""
    ledger = RecordingLedger()
    world = World(("r1",), ledger=ledger)
    under_way: Process | None = None
    for move in moves:
        process = Process(world, move.key, command(move.key, move.flavour), 1)
        process.advance(move.calls)
        if under_way is not None:
            under_way.finish()
            under_way = None
        if move.killed:
            process.crash()
        else:
            under_way = process
    if under_way is not None:
        under_way.finish()
    return ledger.appended
