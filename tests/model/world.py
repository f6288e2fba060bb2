"""What processes share: tables on replicas, statements under way, the ledger, the source, and armed faults.

The tables behave as measured on real servers: EXCHANGE needs both names and undoes itself when repeated, RENAME fails
when its source is missing or its destination exists, a statement may run late, twice or never, and its reply may be
lost in each case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from dpone.domain import operation as operations
from dpone.domain import slot as slots
from dpone.domain.errors import AppendConflict
from dpone.domain.events import Event
from dpone.domain.identity import OperationKey, operation_id, slot_id
from dpone.domain.operation import Operation
from dpone.domain.ports import Recorded, StreamAppend, Swap, SwapForm
from dpone.domain.slot import TargetSlot
from dpone.domain.tables import TableIdentity, TargetRef

TARGET = TargetRef("platform-1", "sales", "orders")
SLOT = slot_id(TARGET)


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(eq=False, slots=True)
class Table:
    """One table on one replica."""

    identity: TableIdentity
    rows: int = 0
    filled: bool = False
    foreign: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A swap that a replica has yet to run."""

    replica: str
    swap: Swap

    def __str__(self) -> str:
        return f"{self.swap.form} {self.swap.candidate} on {self.replica}"


@dataclass(slots=True)
class MemoryLedger:
    """Streams with optimistic versions; every stored event is folded at once, so an illegal one cannot stay hidden."""

    streams: dict[UUID, list[Event]] = field(default_factory=dict)
    operations: dict[UUID, Operation] = field(default_factory=dict)
    slot: TargetSlot = field(default_factory=TargetSlot)

    def read(self, stream: UUID) -> Sequence[Recorded]:
        events = self.streams.get(stream, [])
        return [Recorded(stream, version, event) for version, event in enumerate(events, 1)]

    def append(self, appends: Sequence[StreamAppend]) -> None:
        if any(len(self.streams.get(item.stream, [])) != item.expected for item in appends):
            raise AppendConflict
        for item in appends:
            self._fold(item)
            self.streams.setdefault(item.stream, []).extend(item.events)

    def operation(self, key: OperationKey) -> Operation:
        return self.operations.get(operation_id(key), Operation())

    def events(self, key: OperationKey) -> Sequence[Event]:
        return self.streams.get(operation_id(key), [])

    def _fold(self, item: StreamAppend) -> None:
        for event in item.events:
            if item.stream == SLOT:
                self.slot = slots.evolve(self.slot, event)
            else:
                before = self.operations.get(item.stream, Operation())
                self.operations[item.stream] = operations.evolve(before, event)


@dataclass(slots=True)
class World:
    """Everything outside the processes."""

    replicas: tuple[str, ...]
    exchanges: bool = True
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    tables: dict[str, dict[str, Table]] = field(default_factory=dict)
    pending: list[Statement] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    rows: int = 2
    meddled: bool = False
    trace: list[str] = field(default_factory=list)
    destinations: dict[str, str] = field(default_factory=dict)
    _numbers: int = 0

    def __post_init__(self) -> None:
        self.tables = {replica: {} for replica in self.replicas}

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def fault(self, port: str) -> str:
        """The fault armed for this port, used up by asking; empty when there is none."""
        return self.faults.pop(port, "")

    def live(self, replica: str) -> Table | None:
        return self.tables[replica].get(TARGET.table)

    def identity(self) -> TableIdentity:
        """A new table's: the same on every replica, as a Keeper path is."""
        return TableIdentity(f"table-{self.number()}", "sha256:columns")

    def create(self, replica: str, name: str, identity: TableIdentity) -> Table:
        table = Table(identity)
        self.tables[replica][name] = table
        return table

    def run(self, statement: Statement) -> bool:
        """Whether the statement succeeded. A rename of several tables is not undone when a later step fails."""
        tables, swap = self.tables[statement.replica], statement.swap
        if swap.form is SwapForm.EXCHANGE:
            if swap.candidate not in tables or swap.table not in tables:
                return False
            tables[swap.candidate], tables[swap.table] = tables[swap.table], tables[swap.candidate]
            return True
        steps = [(swap.candidate, swap.arm), (swap.table, swap.predecessor), (swap.arm, swap.table)]
        if swap.form is SwapForm.FIRST:
            del steps[1]
        if self.fault("cut"):
            del steps[-1:]
        return all(self.rename(statement.replica, old, new) for old, new in steps)

    def rebuild(self, replica: str, name: str, identity: TableIdentity) -> bool:
        """Make a table again from another replica that has it; it keeps its identity."""
        copies = [table for other in self.replicas for table in self.tables[other].values()]
        found = next((table for table in copies if table.identity == identity and table.filled), None)
        if found is None or name in self.tables[replica]:
            return False
        self.tables[replica][name] = Table(identity, found.rows, filled=True)
        return True

    def rename(self, replica: str, old: str, new: str) -> bool:
        tables = self.tables[replica]
        if old not in tables or new in tables:
            return False
        tables[new] = tables.pop(old)
        return True

    def meddle(self, replica: str) -> None:
        """Somebody else replaces the target's table by one of their own."""
        self.meddled = True
        foreign = self.create(replica, TARGET.table, self.identity())
        foreign.foreign = foreign.filled = True

    def holding(self, replica: str) -> Iterable[TableIdentity]:
        """The identities of all tables that the replica holds."""
        return [table.identity for table in self.tables[replica].values()]
