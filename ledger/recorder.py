"""What a store must offer, so that the chain, the ledger and its checks know nothing of where bytes lie.

A store is a recorder of the event sourcing library (its application-recorder test cases hold for every one of ours)
with four more things: an identity that lies beside the log, raw rows for verification, the stream ids, and a way to
say that the reply to an insert was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from eventsourcing.persistence import Notification, StoredEvent

STORE_FORMAT: Final = 1
"""The newest store format that this version reads and writes."""


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """Which ledger a store holds.

    ``ledger_id`` is a UUID minted at creation; ``epoch`` counts moves and restores, from 1; ``format`` is the store's
    format; a ``sealed`` store takes no more appends.
    """

    ledger_id: str
    epoch: int
    format: int
    sealed: bool


@dataclass(frozen=True, slots=True)
class RawRow:
    """One stored event exactly as the store holds it, for checks: nothing is converted, any field may be wrong."""

    position: int
    originator_id: object
    originator_version: object
    topic: object
    state: object


class ReplyLost(Exception):
    """An insert was sent and its outcome is not known. Raised by recorders, resolved by the ledger."""


class StoreRecorder(Protocol):
    """A store. Methods raise LedgerFailed unless said otherwise."""

    @property
    def name(self) -> str:
        """How sentences call this store: short, without folder, credential or endpoint."""
        ...

    @property
    def contiguous(self) -> bool:
        """Whether positions count 1, 2, 3, … without a gap."""
        ...

    def identity(self) -> LedgerIdentity:
        """Read the identity record."""
        ...

    def seal(self) -> None:
        """From now on the store itself refuses appends. For ever."""
        ...

    def raise_epoch(self, epoch: int) -> None:
        """Let the identity record say ``epoch``, a higher one. Who opened the ledger before must open it again."""
        ...

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Store all or nothing; returns positions.

        Raises the library's IntegrityError when a (stream, version) is taken, and ReplyLost.
        """
        ...

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """A stream's events, in order of version."""
        ...

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events of all streams in ledger order."""
        ...

    def max_notification_id(self) -> int | None:
        """The last position; None for an empty ledger."""
        ...

    def stream_ids(self) -> Sequence[UUID]:
        """All streams, in ledger order of their first events."""
        ...

    def raw_rows(self, after: int, limit: int) -> Sequence[RawRow]:
        """Stored rows with a position above ``after``, in ledger order, unconverted."""
        ...

    def self_check(self) -> Sequence[str]:
        """What is wrong with the store itself, below the events: one sentence each."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Idempotent."""
        ...
