"""What processes share: tables on replicas, statements under way, the ledger, the source, and armed faults.

The tables behave as measured on real servers (see ``statements``). ``replicas`` are the servers of the cluster,
``admitted`` those that the platform's owner lets operations use; a statement that is sent ON CLUSTER reaches all of
the former, whoever is admitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from dpone.domain import operation as operations
from dpone.domain import slot as slots
from dpone.domain.errors import AppendConflict
from dpone.domain.events import Event
from dpone.domain.identity import OperationKey, operation_id, slot_id
from dpone.domain.names import generation_of
from dpone.domain.operation import Operation
from dpone.domain.ports import Recorded, StreamAppend, SwapForm
from dpone.domain.slot import TargetSlot
from dpone.domain.tables import TableIdentity, TargetRef

from . import statements
from .statements import Statement

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
        if self.has_moved(appends):
            raise AppendConflict
        for item in appends:
            self._fold(item)
            self.streams.setdefault(item.stream, []).extend(item.events)

    def has_moved(self, appends: Sequence[StreamAppend]) -> bool:
        """Whether a stream is not where the append expects it."""
        return any(len(self.streams.get(item.stream, [])) != item.expected for item in appends)

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
    """Everything outside the processes. ``fates``: of the next statement for a replica (see ``statements.FATES``).

    ``wiped`` are replicas that lost all tables and hold no live one since, ``bereft`` those whose predecessor went too.
    """

    replicas: tuple[str, ...]
    exchanges: bool = True
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    tables: dict[str, dict[str, Table]] = field(default_factory=dict)
    pending: list[Statement] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    excluded: set[str] = field(default_factory=set)
    wiped: set[str] = field(default_factory=set)
    bereft: set[str] = field(default_factory=set)
    lost_tables: bool = False
    faults: dict[str, str] = field(default_factory=dict)
    fates: dict[str, str] = field(default_factory=dict)
    rows: int = 2
    meddled: bool = False
    trace: list[str] = field(default_factory=list)
    destinations: dict[str, str] = field(default_factory=dict)
    made: dict[str, TableIdentity] = field(default_factory=dict)
    effective: Counter[tuple[str, str]] = field(default_factory=Counter)
    _midway: dict[str, tuple[Statement, list[tuple[str, str]]]] = field(default_factory=dict)
    _numbers: int = 0

    def __post_init__(self) -> None:
        self.tables = {replica: {} for replica in self.replicas}

    @property
    def admitted(self) -> tuple[str, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.excluded)

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
        self.resume(replica)
        table = Table(identity)
        self.tables[replica][name] = table
        generation = generation_of(name)
        if generation is not None:
            self.made.setdefault(generation, identity)
        return table

    # ------------------------------------------------------------------------------------------- statements

    def send(self, statement: Statement, fate: str) -> bool:
        """A statement reaches its replica, or will. Whether a good reply comes back."""
        if statement.replica in self.unreachable or fate == "late":
            self.pending.append(statement)
            return False
        if fate == "lost":
            return False
        if fate.startswith(("cut", "midway")):
            self._run_in_part(statement, int(fate[-1]), stays=fate.startswith("midway"))
            return False
        done = self.run(statement)
        if fate == "twice":
            self.pending.append(statement)
        return done

    def run(self, statement: Statement) -> bool:
        """Whether the statement succeeded. A rename of several tables is not undone when a later step fails."""
        self.resume(statement.replica)
        statement.runs += 1
        if statement.swap.form is SwapForm.EXCHANGE:
            return self._do(statement, [])
        return self._do(statement, statements.renames(statement.swap))

    def _run_in_part(self, statement: Statement, steps: int, *, stays: bool) -> None:
        """The server dies after so many steps (and runs an entry of the queue again), or takes its time there."""
        self.resume(statement.replica)
        if statement.swap.form is SwapForm.EXCHANGE:
            self.pending.append(statement)
            return
        statement.runs += 1
        todo = statements.renames(statement.swap)
        done = self._do(statement, todo[:steps])
        if done and stays:
            self._midway[statement.replica] = (statement, todo[steps:])
        elif statement.queued:
            self.pending.append(statement)

    def resume(self, replica: str) -> None:
        """What stands between two steps goes on: nothing else on its names gets through before."""
        if replica in self._midway:
            statement, rest = self._midway.pop(replica)
            self._do(statement, rest)

    def die(self, replica: str) -> None:
        """The server starts anew: what stood between two steps is cut there."""
        if replica in self._midway:
            statement, _ = self._midway.pop(replica)
            if statement.queued:
                self.pending.append(statement)

    def _do(self, statement: Statement, steps: Iterable[tuple[str, str]]) -> bool:
        tables, swap = self.tables[statement.replica], statement.swap
        before = self.live(statement.replica)
        if swap.form is SwapForm.EXCHANGE:
            done = statements.exchange(tables, swap)
        else:
            done = all(statements.rename(tables, old, new) for old, new in steps)
        self._count(statement, before)
        return done

    def _count(self, statement: Statement, before: Table | None) -> None:
        """A swap is effective once. Only a server that repeats an entry by itself may take it back."""
        after = self.live(statement.replica)
        generation = generation_of(statement.swap.candidate) or ""
        new = self.made.get(generation)
        was, now = before is not None and before.identity == new, after is not None and after.identity == new
        if was and not now and statement.runs == 1:
            raise Violation(f"{statement} took back what was published")
        self.effective[statement.replica, generation] += now - was
        if now:
            self.wiped.discard(statement.replica)

    def rename(self, replica: str, old: str, new: str) -> bool:
        self.resume(replica)
        return statements.rename(self.tables[replica], old, new)

    # ------------------------------------------------------------------------------------------- what befalls replicas

    def rebuild(self, replica: str, name: str, identity: TableIdentity) -> Table | None:
        """Make a table again beside those of the other replicas; it keeps its identity and is empty at first.

        One that bears the name already is taken; a second one of the identity is not refused. None where no other
        replica has it, or another table bears the name.
        """
        self.resume(replica)
        there = self.tables[replica].get(name)
        if there is not None:
            return there if there.identity == identity else None
        return None if self.copy_of(replica, identity) is None else self.create(replica, name, identity)

    def copy_of(self, replica: str, identity: TableIdentity) -> Table | None:
        """Another replica's table from which this one can be filled."""
        others = [other for other in self.replicas if other != replica and other not in self.unreachable]
        copies = (table for other in others for table in self.tables[other].values())
        return next((table for table in copies if table.identity == identity and table.filled), None)

    def wipe(self, replica: str) -> None:
        """The server comes back with an empty folder. Its entries in the queue are still there."""
        self.tables[replica].clear()
        self._midway.pop(replica, None)
        self.pending = [statement for statement in self.pending if statement.replica != replica or statement.queued]
        self.lost_tables = True
        self.wiped.add(replica)
        self.bereft.add(replica)
        for counted in [key for key in self.effective if key[0] == replica]:
            del self.effective[counted]

    def meddle(self, replica: str, name: str = TARGET.table) -> None:
        """Somebody else replaces the target's table (or one beside it) by one of their own."""
        self.meddled = True
        foreign = self.create(replica, name, TableIdentity(f"table-{self.number()}", "sha256:columns"))
        foreign.foreign = foreign.filled = True

    def holding(self, replica: str) -> Sequence[TableIdentity]:
        """The identities of all tables that the replica holds."""
        return [table.identity for table in self.tables[replica].values()]
