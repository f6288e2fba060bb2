"""What every place that keeps a projection must hold. A test class inherits this and says where its target is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone.domain.errors import ErrorCode
from dpone.ledger.projections.checking import check_projection
from dpone.ledger.projections.faults import ProjectionFailed
from dpone.ledger.projections.folding import RowChange
from dpone.ledger.projections.following import BATCH_EVENTS, Follower
from dpone.ledger.projections.tables import OPERATIONS, SLOTS, TABLES, TIMELINE, Row
from dpone.ledger.projections.target import ProjectionTarget, open_target
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import EventLedger, open_ledger

from .histories import EVENTS_A_LIFE, LIFE, append_lives


def kept(target: ProjectionTarget) -> dict[str, list[Row]]:
    """All rows of all tables."""
    with target.snapshot() as rows:
        return {table.name: list(rows.rows(table)) for table in TABLES}


def projected(ledger: EventLedger, target: ProjectionTarget) -> int:
    """Bring the target up with a follower that remembers nothing; returns its position."""
    follower = Follower(ledger, target)
    return follower.catch_up(follower.begin()).position


class TargetContract:
    """Inherit, and give a ``url`` fixture that names a place where no projection is yet, and ``execute`` for it."""

    def execute(self, url: str, statement: str) -> None:
        """Run a statement behind the projection's back; ``{p}`` stands for what precedes a table's name."""
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[EventLedger]:
        with open_ledger(sqlite_url(tmp_path / "ledger.sqlite"), create=True) as opened:
            yield opened

    @pytest.fixture
    def target(self, url: str) -> Iterator[ProjectionTarget]:
        opened = open_target(url)
        yield opened
        opened.close()

    def test_there_is_nothing_before_the_first_projection(self, target: ProjectionTarget, ledger: EventLedger) -> None:
        assert target.mark() is None
        assert kept(target) == {"operations": [], "slots": [], "timeline": []}
        with pytest.raises(ProjectionFailed) as failed:
            check_projection(ledger, target)
        assert failed.value.code is ErrorCode.REQUEST_INVALID

    def test_an_empty_ledger_makes_empty_tables(self, target: ProjectionTarget, ledger: EventLedger) -> None:
        assert projected(ledger, target) == 0
        assert kept(target) == {"operations": [], "slots": [], "timeline": []}
        assert check_projection(ledger, target).passed

    def test_every_event_is_a_line_and_every_operation_a_row(
        self, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 3)
        assert projected(ledger, target) == ledger.position() == 3 * EVENTS_A_LIFE - 2
        rows = kept(target)
        assert [row[0] for row in rows["timeline"]] == list(range(1, ledger.position() + 1))
        found = [dict(zip(OPERATIONS.names, row, strict=True)) for row in rows["operations"]]
        ends = [
            position for position in range(1, ledger.position() + 1) if rows["timeline"][position - 1][9] == "COMPLETE"
        ]
        assert {row["state"] for row in found} == {"COMPLETE"}
        assert {row["position"] for row in found} == set(ends)
        assert {row["events"] for row in found} == {len(LIFE) + 1}
        (slot,) = [dict(zip(SLOTS.names, row, strict=True)) for row in rows["slots"]]
        assert (slot["holder"], slot["live_run_id"], slot["live_adopted"]) == (None, "run-2", False)

    def test_followers_that_remember_nothing_make_the_same_rows(
        self, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 2)
        end = ledger.position()
        for until in (1, 2, 7, 8, 19, end):
            follower = Follower(ledger, target)
            assert follower.catch_up(follower.begin(), until).position == until
        incremental = kept(target)
        again = Follower(ledger, target)
        again.catch_up(again.rebuild())
        assert kept(target) == incremental

    def test_a_batch_is_bounded_and_the_next_one_goes_on(self, target: ProjectionTarget, ledger: EventLedger) -> None:
        append_lives(ledger, "orders", BATCH_EVENTS // EVENTS_A_LIFE + 2)
        follower = Follower(ledger, target)
        once = follower.advance(follower.begin())
        assert once.position == BATCH_EVENTS
        assert follower.catch_up(once).position == ledger.position() > BATCH_EVENTS
        assert check_projection(ledger, target).passed

    def test_of_two_followers_the_slower_one_takes_the_others_position(
        self, url: str, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 2)
        slow, other = Follower(ledger, target), open_target(url)
        try:
            mark = slow.begin()
            assert projected(ledger, other) == ledger.position()
        finally:
            other.close()
        assert slow.advance(mark, 5).position == ledger.position()
        assert check_projection(ledger, target).passed

    def test_a_follower_that_others_overtook_for_a_while_remembers_nothing_wrong(
        self, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 1)
        slow = Follower(ledger, target)
        slow.catch_up(slow.begin(), 6)
        other = Follower(ledger, target)
        other.catch_up(other.begin(), 11)
        assert slow.catch_up(slow.begin()).position == ledger.position()
        assert check_projection(ledger, target).passed

    def test_a_rebuild_in_between_is_followed(self, target: ProjectionTarget, ledger: EventLedger) -> None:
        append_lives(ledger, "orders", 2)
        follower = Follower(ledger, target)
        mark = follower.catch_up(follower.begin(), 9)
        Follower(ledger, target).rebuild()
        assert follower.advance(mark).position == 0
        assert follower.catch_up(follower.begin()).position == ledger.position()
        assert check_projection(ledger, target).passed

    def test_nothing_is_written_when_a_row_is_refused(self, target: ProjectionTarget, ledger: EventLedger) -> None:
        append_lives(ledger, "orders", 1)
        follower = Follower(ledger, target)
        mark = follower.begin()
        with pytest.raises(ProjectionFailed):
            target.advance(mark, mark.moved(1, "x"), [_without_position()])
        assert target.mark() == mark

    def test_another_ledger_is_refused(self, target: ProjectionTarget, ledger: EventLedger, tmp_path: Path) -> None:
        append_lives(ledger, "orders", 1)
        projected(ledger, target)
        before = kept(target)
        with open_ledger(sqlite_url(tmp_path / "other.sqlite"), create=True) as other:
            with pytest.raises(ProjectionFailed, match="follows another ledger"):
                projected(other, target)
            assert check_projection(other, target).findings == (
                "projection_position: the tables follow another ledger",
            )
        assert kept(target) == before

    def test_a_ledger_that_was_moved_is_refused_until_rebuilt(
        self, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 1)
        projected(ledger, target)
        ledger.recorder.raise_epoch(2)
        with pytest.raises(ProjectionFailed, match="moved or restored"):
            projected(ledger, target)
        follower = Follower(ledger, target)
        follower.catch_up(follower.rebuild())
        assert check_projection(ledger, target).passed

    def test_a_position_beyond_the_ledger_is_refused_and_found(
        self, url: str, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 1)
        projected(ledger, target)
        self.execute(url, "UPDATE {p}projection_position SET position = 999")
        with pytest.raises(ProjectionFailed, match="ends before"):
            projected(ledger, target)
        (finding,) = check_projection(ledger, target).findings
        assert "999 is beyond the ledger" in finding

    def test_another_history_of_the_same_ledger_is_refused(
        self, url: str, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 1)
        projected(ledger, target)
        self.execute(url, "UPDATE {p}projection_position SET last_event = 'ab'")
        with pytest.raises(ProjectionFailed, match="another one than the ledger's"):
            projected(ledger, target)

    @pytest.mark.parametrize(
        ("statement", "finding"),
        [
            ("DELETE FROM {p}timeline WHERE position = 4", "timeline: the row 4 is missing"),
            ("DELETE FROM {p}timeline WHERE position = 1", "timeline: the row 1 is missing"),
            ("UPDATE {p}timeline SET event = 'X' WHERE position = 4", "timeline: the row 4 differs in event"),
            ("UPDATE {p}slots SET holder = 'secret'", "differs in holder"),
            ("UPDATE {p}operations SET attempt = 9, state = 'NEW'", "differs in state, attempt"),
            ("UPDATE {p}operations SET operation_id = 'z'", "is missing"),
            ("UPDATE {p}projection_position SET position = 3", "should not be there"),
        ],
    )
    def test_what_was_changed_by_hand_is_found_and_no_value_told(
        self, url: str, target: ProjectionTarget, ledger: EventLedger, statement: str, finding: str
    ) -> None:
        append_lives(ledger, "orders", 1)
        projected(ledger, target)
        self.execute(url, statement)
        findings = check_projection(ledger, target).findings
        assert any(finding in found for found in findings), findings
        assert not any("secret" in found for found in findings)
        again = Follower(ledger, target)
        again.catch_up(again.rebuild())
        assert check_projection(ledger, target).passed

    @pytest.mark.parametrize("table", ["operations", "other"])
    def test_tables_that_no_projection_made_are_never_touched(
        self, url: str, target: ProjectionTarget, ledger: EventLedger, table: str
    ) -> None:
        projected(ledger, target)
        for known in (*(one.name for one in TABLES), "projection_position"):
            self.execute(url, f"DROP TABLE {{p}}{known}")
        self.execute(url, f"CREATE TABLE {{p}}{table} (id text)")
        self.execute(url, f"INSERT INTO {{p}}{table} VALUES ('mine')")
        for attempt in (Follower(ledger, target).begin, Follower(ledger, target).rebuild):
            with pytest.raises(ProjectionFailed, match="not a projection's"):
                attempt()
        self.execute(url, f"DELETE FROM {{p}}{table} WHERE id = 'mine'")

    def test_a_later_format_is_refused(self, url: str, target: ProjectionTarget, ledger: EventLedger) -> None:
        projected(ledger, target)
        self.execute(url, "UPDATE {p}projection_position SET format = 2")
        with pytest.raises(ProjectionFailed, match="format 2"):
            projected(ledger, target)


def _without_position() -> RowChange:
    return RowChange(TIMELINE, tuple(None for _ in TIMELINE.columns))
