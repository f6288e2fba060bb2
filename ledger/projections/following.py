"""From the ledger to the tables: every event once, in ledger order, none skipped.

Positions count without a gap, and an event stands in the ledger before a later one does. So who demands the next
position, and never one after it, cannot miss what a slower writer appends. The position is written with the rows: a
process that is killed in between has written neither, and the next one goes on from what is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from ...domain.errors import ErrorCode, LedgerFailed
from ..store import EventLedger, Notified
from .faults import other
from .folding import Fold, RowChange
from .tables import PROJECTION_FORMAT
from .target import Mark, ProjectionTarget

BATCH_EVENTS: Final = 500
"""Events a transaction."""


@dataclass(slots=True)
class Follower:
    """Brings one target up to one ledger, batch by batch."""

    ledger: EventLedger
    target: ProjectionTarget
    _fold: Fold = field(init=False)

    def __post_init__(self) -> None:
        self._fold = Fold(self.ledger.read)

    def begin(self) -> Mark:
        """Where the tables are; empty ones are created where there are none.

        Raises ProjectionFailed when they follow another ledger, another epoch of it or another history.
        """
        mark = self.target.mark()
        if mark is None:
            self.target.restart(self._start())
            return self.begin()
        self._check(mark)
        return mark

    def rebuild(self) -> Mark:
        """Drop the tables, whatever they followed, and begin with the first event."""
        self.target.restart(self._start())
        return self.begin()

    def advance(self, mark: Mark, until: int | None = None) -> Mark:
        """Project the next batch, no further than position ``until``; the same mark when there is none.

        When another process moved the tables meanwhile, nothing is written and its mark is returned.
        """
        limit = BATCH_EVENTS if until is None else min(BATCH_EVENTS, until - mark.position)
        batch = self.ledger.notifications(mark.position + 1, limit)
        if not batch:
            return mark
        changes: list[RowChange] = []
        for expected, notified in enumerate(batch, mark.position + 1):
            _check_next(notified, expected, self.ledger.recorder.name)
            changes += self._fold.changes(notified.position, notified.recorded)
        after = mark.moved(batch[-1].position, self._digest(batch[-1].position))
        return after if self.target.advance(mark, after, changes) else self.begin()

    def catch_up(self, mark: Mark, until: int | None = None) -> Mark:
        """Project everything up to position ``until``, or to where the ledger ends now."""
        end = self.ledger.position() if until is None else until
        if end < mark.position and until is None:
            self._check(mark)  # the ledger went back in time
        while mark.position < end:
            further = self.advance(mark, end)
            if further == mark:
                break
            mark = further
        return mark

    def _start(self) -> Mark:
        return Mark.start(self.ledger.ledger_id, self.ledger.recorder.identity().epoch)

    def _check(self, mark: Mark) -> None:
        name = self.target.name
        if mark.format != PROJECTION_FORMAT:
            raise other(name, f"its tables have format {mark.format}, this release makes format {PROJECTION_FORMAT}")
        if mark.ledger_id != self.ledger.ledger_id:
            raise other(name, "it follows another ledger")
        if mark.epoch != self.ledger.recorder.identity().epoch:
            raise other(name, "the ledger was moved or restored since")
        if mark.position > self.ledger.position():
            raise other(name, f"it holds position {mark.position}, and the ledger ends before that")
        if mark.position and self._digest(mark.position) != mark.last_event:
            raise other(name, f"its event at position {mark.position} is another one than the ledger's")

    def _digest(self, position: int) -> str:
        rows = self.ledger.recorder.raw_rows(position - 1, 1)
        if not rows or rows[0].position != position or not isinstance(rows[0].state, bytes):
            return ""
        return sha256(rows[0].state).hexdigest()


def _check_next(notified: Notified, expected: int, name: str) -> None:
    if notified.position == expected:
        return
    raise LedgerFailed(
        ErrorCode.EVIDENCE_INVALID,
        f"Position {expected} of the ledger {name} is missing: an event was removed.",
        safe="The tables hold what stands before it.",
        next="dpone audit verify",
    )
