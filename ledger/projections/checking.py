"""Whether a projection says what the ledger says: its position, and every row against one that is made anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..store import EventLedger
from .following import Follower
from .sqlite import SqliteTarget
from .tables import TABLES, ProjectedTable, Row
from .target import KeptRows, Mark, ProjectionTarget

_FINDINGS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class ProjectionReport:
    """What was compared and what differs, a sentence each: keys and columns are named, never a value."""

    position: int
    rows: int
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.findings


def check_projection(ledger: EventLedger, target: ProjectionTarget) -> ProjectionReport:
    """Compare the tables, as they are at one moment, with tables rebuilt up to their position.

    Raises ProjectionFailed where there are no tables or they cannot be read, and what reading the ledger raises.
    """
    from .faults import absent

    with target.snapshot() as kept:
        if kept.mark is None:
            raise absent(target.name)
        position = _position_problem(ledger, kept.mark)
        if position is not None:
            return ProjectionReport(kept.mark.position, 0, (position,))
        with TemporaryDirectory(prefix="dpone-check-") as folder:
            rebuilt = SqliteTarget(Path(folder) / "rebuilt.sqlite")
            mark = _rebuilt(ledger, rebuilt, kept.mark.position)
            with rebuilt.snapshot() as expected:
                return _compared(kept, expected, mark)


def _position_problem(ledger: EventLedger, mark: Mark) -> str | None:
    identity, end = ledger.recorder.identity(), ledger.position()
    if mark.ledger_id != identity.ledger_id:
        return "projection_position: the tables follow another ledger"
    if mark.epoch != identity.epoch:
        return f"projection_position: the tables follow epoch {mark.epoch}, the ledger is at epoch {identity.epoch}"
    if mark.position > end:
        return f"projection_position: position {mark.position} is beyond the ledger, which ends at {end}"
    return None


def _rebuilt(ledger: EventLedger, target: SqliteTarget, until: int) -> Mark:
    follower = Follower(ledger, target)
    return follower.catch_up(follower.rebuild(), until)


def _compared(kept: KeptRows, expected: KeptRows, mark: Mark) -> ProjectionReport:
    compared, findings = 0, []
    if kept.mark != mark:
        findings.append("projection_position: the last event, or the tables' format, is another one")
    for table in TABLES:
        pairs = _paired(kept.rows(table), expected.rows(table))
        for have, want in pairs:
            compared += 1
            if have != want and len(findings) < _FINDINGS_MAX:
                findings.append(_finding(table, have, want))
    return ProjectionReport(mark.position, compared, tuple(findings))


def _paired(kept: Iterator[Row], expected: Iterator[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows of both by key, both in the order of their keys; None where one side has no row."""
    have, want = _next(kept), _next(expected)
    while have is not None or want is not None:
        if want is None or (have is not None and _before(have, want)):
            yield have, None
            have = _next(kept)
        elif have is None or _before(want, have):
            yield None, want
            want = _next(expected)
        else:
            yield have, want
            have, want = _next(kept), _next(expected)


def _next(rows: Iterator[Row]) -> Row | None:
    return next(islice(rows, 1), None)


def _before(one: Row, other: Row) -> bool:
    first, second = one[0], other[0]
    if isinstance(first, str) and isinstance(second, str):
        return first < second
    return int(first or 0) < int(second or 0)


def _finding(table: ProjectedTable, have: Row | None, want: Row | None) -> str:
    if have is None and want is not None:
        return f"{table.name}: the row {want[0]} is missing"
    if want is None and have is not None:
        return f"{table.name}: the row {have[0]!r:.60} should not be there"
    differing = _differing(table, have or (), want or ())
    key = want[0] if want else None
    return f"{table.name}: the row {key} differs in {', '.join(differing)}"


def _differing(table: ProjectedTable, have: Sequence[object], want: Sequence[object]) -> list[str]:
    pairs = zip(table.names, have, want, strict=True)
    return [name for name, one, two in pairs if type(one) is not type(two) or one != two]
