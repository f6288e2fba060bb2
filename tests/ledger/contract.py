"""What every store must hold. A store's test class inherits this and says how to make and open one.

``new_url`` makes an empty store and returns its URL; opening it, in this process or another, goes through
``open_ledger`` like everything else.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import StoredEvent

from dpone.domain.errors import AppendConflict, AppendUnknown, ErrorCode, LedgerFailed
from dpone.domain.ports import Recorded, StreamAppend
from dpone.ledger.recorder import ReplyLost
from dpone.ledger.store import EventLedger
from dpone.ledger.verify import verify_ledger

from .events import Closed, Noted
from .opening import opened

ROOT = Path(__file__).parents[2]
SECONDS = 60


def noted(stream: UUID, expected: int, *texts: str) -> StreamAppend:
    return StreamAppend(stream, expected, tuple(Noted(text) for text in texts))


def start_writers(*calls: Sequence[str]) -> list[subprocess.Popen[str]]:
    """Start writers, and let them go at the same moment once all have opened the ledger."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.writer", *call],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for call in calls
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    return writers


def acknowledged_until(stop: Callable[[], object], writer: subprocess.Popen[str]) -> tuple[UUID, int]:
    """Let one that floods append thirty times, stop it or its server, and tell its stream and the last version it got.

    The rest of its lines is read through the same file object as the first: that has read ahead, the more so the slower
    this process is, and ``communicate`` would not see those lines.
    """
    assert writer.stdout
    lines = [writer.stdout.readline() for _ in range(30)]
    stop()
    bound = threading.Timer(SECONDS, writer.kill)
    bound.start()
    lines += writer.stdout.readlines()
    bound.cancel()
    writer.wait(SECONDS)
    stream, last = [line for line in lines if line.endswith("\n")][-1].split()
    return UUID(stream), int(last)


class LossyReplies:
    """A real store whose replies get lost: ``stored`` says whether the insert had happened, insert by insert."""

    def __init__(self, recorder: Any, *stored: bool) -> None:
        self.recorder = recorder
        self.losses = list(stored)
        self.inserts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.recorder, name)

    def insert_events(self, stored_events: Sequence[StoredEvent], **rest: Any) -> Sequence[int] | None:
        self.inserts += 1
        if not self.losses:
            return self.recorder.insert_events(stored_events, **rest)  # type: ignore[no-any-return]
        if self.losses.pop(0):
            self.recorder.insert_events(stored_events, **rest)
        raise ReplyLost


class StoreContract:
    """Inherit, and give a ``url`` fixture that makes an empty store."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, url: str) -> Any:
        with opened(url) as ledger:
            yield ledger

    # ------------------------------------------------------------------------------------------- append and read

    def test_what_was_appended_is_read_back_in_order(self, ledger: EventLedger, url: str) -> None:
        stream = uuid4()
        ledger.append([noted(stream, 0, "a", "b")])
        ledger.append([StreamAppend(stream, 2, (Closed("enough, ünïcödé 😀"),))])
        expected = [
            Recorded(stream, 1, Noted("a")),
            Recorded(stream, 2, Noted("b")),
            Recorded(stream, 3, Closed("enough, ünïcödé 😀")),
        ]
        assert ledger.read(stream) == expected
        with opened(url) as again:
            assert again.read(stream) == expected
            assert again.read(uuid4()) == []

    def test_a_fresh_process_continues_a_stream_that_it_has_not_read(self, ledger: EventLedger, url: str) -> None:
        stream = uuid4()
        ledger.append([noted(stream, 0, "a", "b")])
        with opened(url) as again:
            again.append([noted(stream, 2, "c")])
        assert [item.version for item in ledger.read(stream)] == [1, 2, 3]
        assert verify_ledger(ledger).passed

    def test_a_program_that_holds_a_thousand_descriptors_appends_and_reads(
        self, url: str, many_descriptors: None
    ) -> None:
        stream = uuid4()
        with opened(url) as ledger:
            ledger.append([noted(stream, 0, "a")])
            ledger.append([noted(stream, 1, "b")])
            assert [item.version for item in ledger.read(stream)] == [1, 2]

    def test_identity_survives_reopening(self, ledger: EventLedger, url: str) -> None:
        with opened(url) as again:
            assert (again.ledger_id, again.epoch) == (ledger.ledger_id, ledger.epoch)
        assert ledger.epoch == 1
        assert str(UUID(ledger.ledger_id)) == ledger.ledger_id

    def test_calls_that_no_decision_makes_are_refused(self, ledger: EventLedger) -> None:
        stream = uuid4()
        for call in ([], [noted(stream, 0)], [noted(stream, 0, "a"), noted(stream, 0, "b")]):
            with pytest.raises(ValueError, match="an append"):
                ledger.append(call)
        assert ledger.position() == 0

    # -------------------------------------------------------------------------------------------------- conflicts

    def test_a_stale_expectation_is_a_conflict_and_stores_nothing(self, ledger: EventLedger, url: str) -> None:
        stream, other = uuid4(), uuid4()
        ledger.append([noted(stream, 0, "a")])
        with opened(url) as again:
            again.append([noted(stream, 1, "theirs")])
        for expected in (0, 1):
            with pytest.raises(AppendConflict) as caught:
                ledger.append([noted(other, 0, "x"), noted(stream, expected, "mine")])
            assert caught.value.code is ErrorCode.LEDGER_CONFLICT
        assert [item.event for item in ledger.read(stream)] == [Noted("a"), Noted("theirs")]
        assert ledger.read(other) == []
        ledger.append([noted(stream, 2, "now")])
        assert verify_ledger(ledger).passed

    def test_equal_bytes_do_not_make_a_loser_a_winner(self, ledger: EventLedger) -> None:
        stream = uuid4()
        ledger.append([noted(stream, 0, "same")])
        with pytest.raises(AppendConflict):
            ledger.append([noted(stream, 0, "same")])

    def test_an_expectation_beyond_the_end_is_broken_evidence(self, ledger: EventLedger) -> None:
        stream = uuid4()
        ledger.append([noted(stream, 0, "a")])
        with pytest.raises(LedgerFailed, match=f"Event 5 of stream {stream}") as caught:
            ledger.append([noted(stream, 5, "b")])
        assert caught.value.code is ErrorCode.EVIDENCE_INVALID

    # ------------------------------------------------------------------------------------------------ ledger order

    def test_notifications_follow_the_order_of_appends(self, ledger: EventLedger) -> None:
        first, second = uuid4(), uuid4()
        ledger.append([noted(first, 0, "1", "2"), noted(second, 0, "3")])
        ledger.append([noted(first, 2, "4")])
        assert ledger.position() == 4
        got = ledger.notifications(1, 10)
        assert [item.position for item in got] == [1, 2, 3, 4]
        assert [item.recorded.event for item in got] == [Noted(str(number)) for number in range(1, 5)]
        assert [item.position for item in ledger.notifications(2, 2)] == [2, 3]
        assert list(ledger.streams()) == [first, second]

    # ------------------------------------------------------------------------------------------------- lost replies

    def test_a_lost_reply_is_resolved_by_own_bytes(self, ledger: EventLedger) -> None:
        stream = uuid4()
        lossy = LossyReplies(ledger.recorder, True)
        ledger.recorder = lossy
        ledger.append([noted(stream, 0, "a")])
        assert lossy.inserts == 1
        ledger.append([noted(stream, 1, "b")])
        assert [item.event for item in ledger.read(stream)] == [Noted("a"), Noted("b")]

    def test_a_lost_request_is_sent_once_more(self, ledger: EventLedger) -> None:
        stream = uuid4()
        lossy = LossyReplies(ledger.recorder, False)
        ledger.recorder = lossy
        ledger.append([noted(stream, 0, "a")])
        assert lossy.inserts == 2
        assert len(ledger.read(stream)) == 1

    def test_a_second_lost_reply_to_a_stored_append_is_success(self, ledger: EventLedger) -> None:
        stream = uuid4()
        ledger.recorder = LossyReplies(ledger.recorder, False, True)
        ledger.append([noted(stream, 0, "a")])
        assert len(ledger.read(stream)) == 1

    def test_what_stays_unknown_says_so(self, ledger: EventLedger) -> None:
        ledger.recorder = LossyReplies(ledger.recorder, False, False)
        with pytest.raises(AppendUnknown) as caught:
            ledger.append([noted(uuid4(), 0, "a")])
        assert caught.value.next

    def test_a_lost_race_behind_a_lost_reply_is_a_conflict(self, ledger: EventLedger, url: str) -> None:
        stream = uuid4()
        with opened(url) as again:
            again.append([noted(stream, 0, "theirs")])
        ledger.recorder = LossyReplies(ledger.recorder, False)
        with pytest.raises(AppendConflict):
            ledger.append([noted(stream, 0, "mine")])

    # --------------------------------------------------------------------------------------------------- processes

    def test_every_race_between_processes_has_exactly_one_winner(self, ledger: EventLedger, url: str) -> None:
        shared = uuid4()
        writers = start_writers(*(("race", url, str(shared), str(number), "100") for number in range(3)))
        wins: dict[int, list[str]] = {}
        losses = 0
        for writer in writers:
            out, _ = writer.communicate(timeout=SECONDS)
            assert writer.returncode == 0
            *won, lost = out.splitlines()
            losses += int(lost.removeprefix("lost "))
            for line in won:
                version, who = line.split()
                wins.setdefault(int(version), []).append(who)
        assert losses, "there was no race to win"
        events = ledger.read(shared)
        assert [item.version for item in events] == list(range(1, 101))
        assert {version: [who] for version, who in ((item.version, item.event.text) for item in events)} == wins  # type: ignore[attr-defined]
        report = verify_ledger(ledger)
        assert report.passed, report.findings
        assert report.events == 2 * 100  # each race was won together with an event in the winner's own stream

    def test_a_follower_skips_nothing_while_others_write(self, ledger: EventLedger, url: str) -> None:
        writers = start_writers(("flood", url, "60"), ("flood", url, "60"))
        seen: list[int] = []
        deadline = time.monotonic() + SECONDS
        while len(seen) < 240 and time.monotonic() < deadline:
            seen += [item.position for item in ledger.notifications(seen[-1] + 1 if seen else 1, 7)]
        for writer in writers:
            writer.communicate(timeout=SECONDS)
        assert seen == list(range(1, 241))

    def test_a_kill_in_the_middle_of_appends_loses_nothing_acknowledged(self, ledger: EventLedger, url: str) -> None:
        (writer,) = start_writers(("flood", url, "100000"))
        stream, last = acknowledged_until(writer.kill, writer)
        report = verify_ledger(ledger)
        assert report.passed, report.findings
        events = ledger.read(stream)
        assert last <= len(events) <= last + 2
        assert len(events) % 2 == 0  # appended in pairs: no half of one
        ledger.append([noted(stream, len(events), "after")])
