"""What the decisions need from the outside, as protocols. Adapters implement them; tests may wrap them.

Rows travel as Arrow record batches of at most :data:`~dpone.domain.limits.BATCH_ROWS` rows, already converted so that
every value is exactly what the target will hold. The Arrow type that stands for each ClickHouse type:

=====================  ==========================================
ClickHouse             Arrow
=====================  ==========================================
Int8 … Int64, UInt…    int8 … int64, uint8 … uint64
Float32, Float64       float32, float64
Bool                   bool
String                 string (valid UTF-8) or binary
Date, Date32           date32
DateTime[('zone')]     timestamp[s, UTC]
DateTime64(p[,'zone']) timestamp[s|ms|us|ns, UTC]: the coarsest unit that holds p digits
Decimal(p, s)          decimal128(p, s)
UUID                   string, 36 lower-case characters
Nullable(T)            as T, with nulls
=====================  ==========================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from .tables import Column, Metrics, Observation, ReplicaLook, TableDefinition, TableIdentity, TargetRef

if TYPE_CHECKING:
    from uuid import UUID

    from .events import Event

RecordBatch = Any  # pyarrow.RecordBatch; named here so that this room needs no pyarrow

Progress = Callable[[int, int], None]
"""Called with (rows so far, source bytes read so far) while rows stream."""


class Clock(Protocol):
    """Wall time for people and monotonic time for budgets. Neither ever decides an order."""

    def now(self) -> str:
        """Current UTC time, RFC 3339 with microseconds and ``Z``."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...


class Ids(Protocol):
    """Random identifiers."""

    def new(self) -> str:
        """A fresh random UUID, 36 characters."""
        ...


# ---------------------------------------------------------------------------------------------------------- ledger


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as it was read back: where it stands and what it says."""

    stream: UUID
    version: int
    event: Event


@dataclass(frozen=True, slots=True)
class StreamAppend:
    """Events for one stream. ``expected`` is the version of the last event that the decision was based on (0: none)."""

    stream: UUID
    expected: int
    events: tuple[Event, ...]


class Ledger(Protocol):
    """The append-only memory."""

    def read(self, stream: UUID) -> Sequence[Recorded]:
        """All events of a stream in order, its chain verified. Raises LedgerFailed."""
        ...

    def append(self, appends: Sequence[StreamAppend]) -> None:
        """Store all events of all streams, or nothing.

        Raises AppendConflict when any stream has moved past ``expected``; AppendUnknown when the outcome could not be
        established; LedgerFailed otherwise.
        """
        ...


# ---------------------------------------------------------------------------------------------------------- source


class SourceReading(Protocol):
    """One read of the source, from the first row to the last. Used once.

    Iterating yields converted batches. Exhausting it verifies that the source did not change meanwhile
    (DPONE_SOURCE_CHANGED). ``observation`` and ``fingerprint`` are available after that and describe exactly the rows
    that were yielded.
    """

    def __iter__(self) -> Iterator[RecordBatch]: ...

    @property
    def observation(self) -> Observation: ...

    @property
    def fingerprint(self) -> Mapping[str, str | int]:
        """What the source was: for a file ``name`` (no folder), ``bytes``, ``modified`` (RFC 3339)."""
        ...


class Source(Protocol):
    """Where rows come from."""

    def describe(self) -> tuple[Column, ...]:
        """The source's columns with the ClickHouse types that hold its values exactly; reads no row of a typed source.

        Raises SourceFailed: missing, unreadable, empty, or untyped (a CSV without declared columns, whose error
        carries a ready-to-paste block).
        """
        ...

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        """Open the source once and convert its rows to ``columns``, in that order."""
        ...


# ---------------------------------------------------------------------------------------------------------- target


class SwapForm(StrEnum):
    """What a publication statement does. Each can succeed once only: afterwards its first step finds no table.

    An exchange alone undoes itself when it runs again, which is why what it leaves under the candidate's name is
    sealed. The obvious order of a rename, ``table TO predecessor, candidate TO table``, would leave no live table
    where the candidate has been fenced off: so the candidate moves first, to a name that only this statement uses.
    """

    EXCHANGE = "EXCHANGE"  # candidate and table
    RENAME = "RENAME"  # candidate TO arm, table TO predecessor, arm TO table
    FIRST = "FIRST"  # candidate TO arm, arm TO table: there is no table yet


@dataclass(frozen=True, slots=True)
class Swap:
    """One publication statement, sent once.

    ``replicas`` empty: to all of them, by one statement of the cluster; otherwise to each of these directly.
    """

    database: str
    table: str
    candidate: str
    arm: str
    predecessor: str
    form: SwapForm
    replicas: tuple[str, ...] = ()


class TargetPlatform(Protocol):
    """The servers that hold the target; an inventory of one on the embedded engine."""

    @property
    def replicas(self) -> tuple[str, ...]:
        """The admitted replicas, sorted by name."""
        ...

    def prepare(self, database: str) -> None:
        """Begin, beside other work, what acquiring and looking for refusals will wait for. Holds nothing, never raises.

        Whatever it runs into is found again, and said, by those two.
        """
        ...

    def acquire(self) -> None:
        """Make the platform usable by this process (embedded: take the folder's lock). Raises EngineBusy."""
        ...

    def release(self) -> None:
        """Let go, so that another process may use it. Idempotent."""
        ...

    def refusals(self, target: TargetRef, definition: TableDefinition) -> tuple[str, ...]:
        """Why this target cannot be published to: one sentence each, before anything is read. Empty: it can."""
        ...

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        """Every replica's tables named ``table`` or bearing one of this product's names for it."""
        ...

    def exchanges(self, database: str) -> bool:
        """Whether two tables of this database can be exchanged; where not, publishing is a guarded rename."""
        ...

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        """Create one empty table on every replica. Fails when the name exists.

        On a cluster its Keeper path belongs to the generation that the name carries
        (:func:`~dpone.domain.names.generation_of`) and to no other.
        """
        ...

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[RecordBatch]) -> None:
        """Insert all batches, synced to disk before it returns. No batch is ever sent again."""
        ...

    def synchronise(self, database: str, name: str) -> None:
        """Wait, within a bound, until every replica holds the very same rows. Raises EngineFailed."""
        ...

    def observe(self, database: str, name: str, columns: Sequence[Column], metrics: Metrics) -> Observation:
        """Count in this process (no reader): for evidence that no target observation depends on."""
        ...

    def row_count(self, database: str, name: str) -> Mapping[str, int]:
        """The server's own row count, by replica."""
        ...

    def swap(self, swap: Swap) -> None:
        """Send one publication statement, once. Whatever it answers, only a look says what became of it."""
        ...

    def reported(self, candidate: str) -> Mapping[str, str]:
        """What the servers say became of statements that name this candidate, by replica.

        For a person alone: such reports are trimmed, lost and configurable. Never raises.
        """
        ...

    def rebuild(
        self, replica: str, database: str, name: str, definition: TableDefinition, identity: TableIdentity
    ) -> None:
        """Make a generation again on a replica that lost it, from the other replicas, under this name.

        One of this identity that bears the name already is what an earlier attempt began: it is finished. Synchronised
        and compared when it returns. Raises EngineFailed.
        """
        ...

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        """Rename one table on one replica."""
        ...

    def drop(self, replica: str, database: str, name: str, identity: TableIdentity) -> bool:
        """Drop the table if it is that very one. False: no table of that identity is there."""
        ...


# ---------------------------------------------------------------------------------------------------------- reader


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a reader process is asked: one table, by name and expected identity on every replica, and what to count.

    One replica is scanned, the first by name; all of them are looked at before and after.
    """

    database: str
    table: str
    identities: Mapping[str, TableIdentity]
    columns: tuple[Column, ...]
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class ReadResult:
    """One reader's answer. The identities were the same before and after the scan."""

    observation: Observation
    replica: str
    milliseconds: int


class Reader(Protocol):
    """Observes a table from a process of its own, within the reader's budget."""

    def warm(self, workers: int = 1) -> None:
        """Start workers early until so many wait, so that start-up overlaps other work. They hold nothing."""
        ...

    def observe(self, plan: ReadPlan) -> ReadResult:
        """One attempt, one worker. The caller must have released the platform.

        Raises ReaderFailed; ``fits`` false means that this table can never be observed within the budget or frame.
        """
        ...

    def close(self) -> None:
        """End and reap whatever is still running. Idempotent, bounded by READER_REAP_SECONDS."""
        ...
