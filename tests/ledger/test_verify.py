"""One changed byte anywhere in a stored event is found and named; so are cuts, moves and missing guards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from dpone.domain.errors import ErrorCode, IllegalTransition, LedgerFailed
from dpone.domain.ports import Recorded, StreamAppend
from dpone.ledger.mapper import EventCodec
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.sqlite_schema import GUARDS
from dpone.ledger.store import EventLedger, open_ledger
from dpone.ledger.verify import verify_ledger

from .events import CODEC, Closed, Noted

COLUMNS = ("originator_id", "originator_version", "topic", "state")
FIRST, SECOND = UUID(int=0xA1), UUID(int=0xB2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[EventLedger]:
    with open_ledger(sqlite_url(path), create=True, codec=CODEC) as ledger:
        ledger.append([StreamAppend(FIRST, 0, (Noted("a"), Noted("b"))), StreamAppend(SECOND, 0, (Noted("c", 7),))])
        ledger.append([StreamAppend(FIRST, 2, (Closed("d"),))])
        yield ledger


class Tamper:
    """A raw connection that takes the guards away and puts them back, as an intruder would."""

    def __init__(self, path: Path) -> None:
        self.raw = sqlite3.connect(path, isolation_level=None)
        self.raw.execute("PRAGMA synchronous=OFF")

    def __enter__(self) -> sqlite3.Connection:
        for guard in GUARDS:
            self.raw.execute(f"DROP TRIGGER {guard}")
        return self.raw

    def __exit__(self, *_: object) -> None:
        for guard in GUARDS.values():
            self.raw.execute(guard)
        self.raw.close()


def test_an_untouched_ledger_holds(ledger: EventLedger) -> None:
    report = verify_ledger(ledger)
    assert (report.events, report.streams, report.findings) == (4, 2, ())


def test_every_flipped_byte_is_found_and_named(ledger: EventLedger, path: Path) -> None:
    flips = 0
    with Tamper(path) as raw:
        # Guards are absent here: only findings about events count.
        originals = raw.execute("SELECT rowid, originator_id, originator_version, topic, state FROM stored_events")
        for position, *fields in originals.fetchall():
            for column, stored in zip(COLUMNS, fields, strict=True):
                for changed in _flipped(column, stored):
                    if not _change(raw, column, changed, position):
                        continue
                    named = [found for found in verify_ledger(ledger).findings if found.position == position]
                    assert named, (position, column, changed)
                    if column not in ("originator_id", "originator_version"):
                        assert named[0].stream == str(UUID(fields[0]))
                        assert named[0].version == str(fields[1])
                    flips += 1
                raw.execute(f"UPDATE stored_events SET {column} = ? WHERE rowid = ?", (stored, position))
    assert flips > 1000
    assert verify_ledger(ledger).passed


def _change(raw: sqlite3.Connection, column: str, changed: object, position: int) -> bool:
    """False when the key's own index refuses: that (stream, version) is another event's."""
    value = "CAST(? AS TEXT)" if column in ("originator_id", "topic") else "?"
    try:
        raw.execute(f"UPDATE stored_events SET {column} = {value} WHERE rowid = ?", (changed, position))
    except sqlite3.IntegrityError:
        return False
    return True


def _flipped(column: str, stored: object) -> Iterator[object]:
    if isinstance(stored, int):
        yield from (stored ^ (1 << bit) for bit in range(16))
        return
    whole = stored.encode() if isinstance(stored, str) else bytes(stored)  # type: ignore[call-overload]
    for index, byte in enumerate(whole):
        # One bit of every byte of a state; every bit of the shorter columns.
        for bit in (index % 8,) if column == "state" else range(8):
            yield whole[:index] + bytes([byte ^ (1 << bit)]) + whole[index + 1 :]


def test_reading_refuses_what_verification_finds(ledger: EventLedger, path: Path) -> None:
    with Tamper(path) as raw:
        raw.execute("UPDATE stored_events SET state = replace(state, '\"b\"', '\"x\"') WHERE rowid = 2")
        raw.execute("UPDATE stored_events SET state = CAST(state AS BLOB)")
    with pytest.raises(LedgerFailed, match=f"Event 2 of stream {FIRST} .*digest") as caught:
        ledger.read(FIRST)
    assert caught.value.code is ErrorCode.EVIDENCE_INVALID
    with pytest.raises(LedgerFailed, match="position 2"):
        ledger.notifications(1, 10)
    assert [item.event for item in ledger.read(SECOND)] == [Noted("c", 7)]
    (finding,) = verify_ledger(ledger).findings
    assert str(finding) == f"event 2 of stream {FIRST} (position 2): its digest does not match its content"


def test_a_removed_event_is_found(ledger: EventLedger, path: Path) -> None:
    with Tamper(path) as raw:
        raw.execute("DELETE FROM stored_events WHERE rowid = 2")
    findings = [str(found) for found in verify_ledger(ledger).findings]
    assert any("position 2 is missing" in found for found in findings)
    assert any("version 2 should stand here" in found for found in findings)
    with pytest.raises(LedgerFailed, match=f"Event 2 of stream {FIRST} .*missing"):
        ledger.read(FIRST)


def test_two_events_that_changed_places_are_found(ledger: EventLedger, path: Path) -> None:
    with Tamper(path) as raw:
        raw.execute("UPDATE stored_events SET rowid = 99 WHERE rowid = 1")
        raw.execute("UPDATE stored_events SET rowid = 1 WHERE rowid = 2")
        raw.execute("UPDATE stored_events SET rowid = 2 WHERE rowid = 99")
    assert {found.position for found in verify_ledger(ledger).findings} >= {1, 2}


def test_a_spliced_history_is_found(ledger: EventLedger, path: Path, tmp_path: Path) -> None:
    """Valid events of another ledger, copied in: every digest fits, only the chain does not."""
    other = tmp_path / "other.sqlite"
    with open_ledger(sqlite_url(other), create=True, codec=CODEC) as forged:
        forged.append([StreamAppend(FIRST, 0, (Noted("a"), Noted("forged")))])
    with Tamper(path) as raw:
        raw.execute("ATTACH ? AS other", (str(other),))
        raw.execute(
            "UPDATE stored_events SET state = (SELECT state FROM other.stored_events WHERE rowid = 2) WHERE rowid = 2"
        )
    found = {str(item) for item in verify_ledger(ledger).findings}
    assert f"event 2 of stream {FIRST} (position 2): it does not continue the event before it" in found


def test_an_unknown_topic_and_an_odd_shape_are_found(ledger: EventLedger, path: Path) -> None:
    stream = uuid4()
    odd = EventCodec(
        {"Noted": Noted, "Erased": Closed},
        lambda event: {"odd": 1} if isinstance(event, Noted) else {"reason": "x"},
        CODEC.from_data,
    )
    with open_ledger(sqlite_url(path), create=False, codec=odd) as other:
        other.append([StreamAppend(stream, 0, (Noted("a"), Closed("x")))])
    found = [str(item) for item in verify_ledger(ledger).findings]
    assert found == [
        f"event 1 of stream {stream} (position 5): its fields do not fit its topic",
        f"event 2 of stream {stream} (position 6): this version does not know its topic",
    ]


def test_a_missing_guard_is_found(ledger: EventLedger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP TRIGGER stored_events_no_update")
    assert [str(found) for found in verify_ledger(ledger).findings] == [
        "the guard stored_events_no_update is missing or changed: events could be edited"
    ]


def test_histories_are_judged_stream_by_stream(ledger: EventLedger) -> None:
    def judge(stream: UUID, history: Sequence[Recorded]) -> str | None:
        if stream == FIRST:
            assert [item.version for item in history] == [1, 2, 3]
            return "closed without being opened"
        raise IllegalTransition("noted twice")

    found = verify_ledger(ledger, judge).findings
    assert [(item.stream, item.what) for item in found] == [
        (str(FIRST), "closed without being opened"),
        (str(SECOND), "noted twice"),
    ]
