"""The ledger beside the library's plain recorder on the same disk, and rebuilding an operation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import UUID, uuid4

from scripts.flights import CHECKOUT, MANIFEST, provide_flights

from dpone.domain import operation as operations
from dpone.domain.events import SlotOpened
from dpone.domain.ports import StreamAppend
from dpone.domain.tables import TargetRef
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import EventLedger, open_ledger

from .loads import fresh, run_words
from .row import Row, timed

_CHUNK = 25
_CHUNKS_PER_ROUND = 12
_REBUILDS = 200


def appends(rounds: int) -> Iterator[Row]:
    """Appends per second ÷ the library's plain SQLite recorder's, in alternating chunks of 25."""
    from eventsourcing.persistence import StoredEvent
    from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

    folder = fresh("ledger")
    event = SlotOpened(at="2026-01-01T00:00:00.000000Z", target=TargetRef("p" * 36, "analytics", "x" * 180))
    mine = open_ledger(sqlite_url(folder / "ledger.sqlite"), create=True)
    library = SQLiteApplicationRecorder(SQLiteDatastore(f"file:{folder}/plain.sqlite?mode=rwc"))
    library.create_table()
    ratios = []
    for _ in range(rounds * _CHUNKS_PER_ROUND):
        stream = uuid4()
        own = _appended(mine, stream, event)
        state = mine.recorder.select_events(stream)[0].state
        began = time.perf_counter()
        for version in range(1, _CHUNK + 1):
            library.insert_events([StoredEvent(stream, version, "SlotOpened", state)])
        ratios.append((time.perf_counter() - began) / own)
    mine.close()
    yield Row("ledger appends/s ÷ the library's plain recorder", "×", tuple(ratios), 0.8, at_most=False)


def rebuild(rounds: int) -> Iterator[Row]:
    """Milliseconds to read, verify and fold the operation of one durable load."""
    provide_flights()
    home = fresh("rebuild")
    timed(run_words(CHECKOUT / MANIFEST, "r"), {"DPONE_HOME": str(home)})
    with open_ledger(sqlite_url(home / "ledger.sqlite"), create=False) as store:
        stream = max(store.streams(), key=lambda one: len(store.read(one)))
        count = len(store.read(stream))
        values = []
        for _ in range(rounds):
            began = time.perf_counter()
            for _ in range(_REBUILDS):
                operations.fold(item.event for item in store.read(stream))
            values.append((time.perf_counter() - began) / _REBUILDS * 1000 * 20 / count)
    yield Row("rebuild an operation of 20 events", "ms", tuple(values), 5)


def _appended(ledger: EventLedger, stream: UUID, event: SlotOpened) -> float:
    began = time.perf_counter()
    for version in range(_CHUNK):
        ledger.append([StreamAppend(stream, version, (event,))])
    return time.perf_counter() - began
