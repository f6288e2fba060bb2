"""Moving a ledger to another store, and taking a backup into use: the steps, each of which can be repeated.

A move seals the old ledger first, so that the store itself refuses what comes later; then copies every row byte for
byte, checks the copy, and only then lets the platforms answer to it. Until that last step the platforms name the old
epoch, so no run can use a copy that is not finished; after it, none can use the old ledger. Killed anywhere, the same
command goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

from eventsourcing.persistence import IntegrityError, StoredEvent

from ..domain.errors import ErrorCode, LedgerFailed
from .chain import ChainBroken
from .recorder import STORE_FORMAT, LedgerIdentity, RawRow, ReplyLost
from .store import EventLedger, stored_event
from .verify import Legality, verify_ledger

_BATCH_ROWS: Final = 100
_BATCH_BYTES: Final = 256 * 1024
_LOST_MAX: Final = 5
_NEXT: Final = "dpone audit verify"


class Markers(Protocol):
    """The platforms that answer to a ledger: where they say so, and the events that record it."""

    def epoch(self, ledger_id: str) -> int:
        """The highest epoch of this ledger that a platform names; 0: none does. Raises DponeError."""
        ...

    def record(self, ledger: EventLedger, epoch: int, reason: str) -> int:
        """Append the reviewed event to every platform that does not have it; how many. Idempotent."""
        ...

    def raise_epoch(self, ledger_id: str, epoch: int) -> int:
        """Let every platform of this ledger name ``epoch``; how many markers changed. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move or a restore did. ``copied`` rows by this command, of ``events`` in all."""

    ledger_id: str
    epoch: int
    events: int
    copied: int
    platforms: int
    markers: int


OpenCopy = Callable[[LedgerIdentity], EventLedger]
"""Open the ledger to move to, making it with this identity where there is none."""


def migrate(source: EventLedger, open_copy: OpenCopy, markers: Markers, legality: Legality) -> Moved:
    """Move ``source``; the caller closes it. Idempotent. Raises DponeError; the source is sealed before any copying."""
    old = source.recorder.identity()
    if not old.sealed:
        _demand_whole(source, legality, "The ledger to move does not hold; it was not sealed")
    _demand_earlier(markers.epoch(old.ledger_id), old)
    wanted = LedgerIdentity(old.ledger_id, old.epoch + 1, STORE_FORMAT, False)
    with open_copy(wanted) as copy:
        _demand_copy(copy, wanted)
        _demand_same(source, copy, so_far=True)
        if not old.sealed:
            source.recorder.seal()
        copied = _copy(source, copy)
        events = _demand_same(source, copy)
        _demand_whole(copy, legality, "The copy does not hold")
        platforms = markers.record(copy, wanted.epoch, "the ledger was moved to another store")
    return Moved(
        old.ledger_id, wanted.epoch, events, copied, platforms, markers.raise_epoch(old.ledger_id, wanted.epoch)
    )


def restore(open_ledger: Callable[[], EventLedger], markers: Markers, legality: Legality, reason: str) -> Moved:
    """Take the ledger that stands there, a backup, into use: at an epoch above every one that was used before.

    Idempotent while unfinished: killed before its last step, the same command goes on with the same epoch.
    """
    with open_ledger() as backup:
        found = backup.recorder.identity()
        if found.sealed:
            raise _sealed_backup(backup.recorder.name)
        _demand_whole(backup, legality, "The backup does not hold")
        marked = markers.epoch(found.ledger_id)
        unfinished = 0 < marked < found.epoch
        epoch = found.epoch if unfinished else max(found.epoch, marked) + 1
        if not unfinished:
            backup.recorder.raise_epoch(epoch)
    with open_ledger() as raised:
        platforms = markers.record(raised, epoch, reason)
        events = raised.position()
    return Moved(found.ledger_id, epoch, events, 0, platforms, markers.raise_epoch(found.ledger_id, epoch))


def _copy(source: EventLedger, copy: EventLedger) -> int:
    """Append what the copy lacks, row by row as stored. A reply that was lost is looked up, never guessed."""
    copied = lost = 0
    while True:
        done = copy.position()
        batch = _next_batch(source, done)
        if not batch:
            return copied
        try:
            copy.recorder.insert_events(batch)
        except (IntegrityError, ReplyLost) as error:
            lost = lost + 1 if copy.position() == done else 0
            if lost > _LOST_MAX:
                raise _stuck(copy.recorder.name) from error
            continue
        copied += len(batch)


def _next_batch(source: EventLedger, after: int) -> list[StoredEvent]:
    batch: list[StoredEvent] = []
    size = 0
    for row in source.recorder.raw_rows(after, _BATCH_ROWS):
        try:
            event = stored_event(row)
        except ChainBroken as broken:
            raise _differs(source.recorder.name, row.position) from broken
        size += len(event.state)
        if batch and size > _BATCH_BYTES:
            break
        batch.append(event)
    return batch


def _demand_same(source: EventLedger, copy: EventLedger, *, so_far: bool = False) -> int:
    """Every row of the source stands in the copy, at its position, byte for byte; how many. The copy may go on.

    ``so_far``: only the rows that the copy has, from a move that was killed.
    """
    events, theirs = 0, copy.raw_rows()
    for mine in source.raw_rows():
        other = next(theirs, None)
        if other is None and so_far:
            break
        if other is None or _digest(mine) != _digest(other):
            raise _differs(copy.recorder.name, mine.position)
        events += 1
    return events


def _digest(row: RawRow) -> bytes:
    state = row.state if isinstance(row.state, bytes) else b""
    head = f"{row.position} {row.originator_id} {row.originator_version} {row.topic} ".encode()
    return sha256(head + state).digest()


def _demand_whole(ledger: EventLedger, legality: Legality, what: str) -> None:
    report = verify_ledger(ledger, legality)
    if not report.passed:
        raise LedgerFailed(
            ErrorCode.EVIDENCE_INVALID, f"{what}: {report.findings[0]}", safe="No platform was changed.", next=_NEXT
        )


def _demand_copy(copy: EventLedger, wanted: LedgerIdentity) -> None:
    found = copy.recorder.identity()
    if found == wanted:
        return
    if found.ledger_id == wanted.ledger_id:
        what = f"The ledger {copy.recorder.name} is this very ledger, or another copy of it, at epoch {found.epoch}."
    else:
        what = f"The ledger {copy.recorder.name} is another ledger than the one to move."
    raise LedgerFailed(
        ErrorCode.REQUEST_INVALID, what, safe="Neither ledger was changed.", next="Name an empty place to move to."
    )


def _demand_earlier(marked: int, old: LedgerIdentity) -> None:
    # At one above, an earlier move was finished: repeating it changes nothing.
    if marked > old.epoch + 1:
        raise LedgerFailed(
            ErrorCode.LEDGER_CORRUPT,
            f"The platforms answer to epoch {marked} of this ledger, and the one to move has epoch {old.epoch}.",
            next="dpone ledger status",
        )


def _differs(name: str, position: int) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.EVIDENCE_INVALID,
        f"The row at position {position} of the ledger {name} is not the row that was to be copied.",
        safe="No platform was changed, and nothing of the old ledger.",
        next="Remove the copy, or name another place, then repeat the command.",
    )


def _stuck(name: str) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.LEDGER_UNREACHABLE,
        f"The ledger {name} takes no rows: replies were lost again and again.",
        safe="No platform was changed. The old ledger is sealed and whole.",
        next="Repeat the same command: it goes on where this one ended.",
    )


def _sealed_backup(name: str) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        f"The ledger {name} is sealed: it was migrated, and its successor is the ledger now.",
        next="Restore a backup of the successor, or one that was made before the move.",
    )
