"""The queries of the how-to run on SQLite and PostgreSQL, over a history that gives each of them something to say."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from dpone.domain.events import SlotOpened
from dpone.domain.identity import operation_id, slot_id
from dpone.domain.operation import State
from dpone.domain.ports import StreamAppend
from dpone.ledger.projections.following import Follower
from dpone.ledger.projections.target import open_target
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import EventLedger, open_ledger
from tests.domain import examples as x
from tests.ledger.projections.histories import append_lives, key
from tests.servers.postgres import PASSWORD, PostgresServer
from tests.servers.sessions import postgres

from .pages import ROOT

__all__ = ["postgres"]
PAGE = (ROOT / "docs" / "how-to" / "query-projections.md").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"<!-- query: (\w+) -->\n\n```sql\n(.*?)```", PAGE, re.DOTALL))
Rows = list[tuple[Any, ...]]


def _history(ledger: EventLedger) -> None:
    """An operation that completed, one that failed, one that a person ended, one whose swap is unknown."""
    append_lives(ledger, "orders", 1)
    for table, state in (("failed", State.FAILED), ("ended", State.ADMITTED), ("unknown", State.PREPARED)):
        named = key(table, "monday")
        stream, slot = operation_id(named), slot_id(named.target)
        events = (x.admitted(named), *x.UNTIL[state][1:])
        target = SlotOpened(at=x.AT, target=named.target)
        ledger.append([StreamAppend(stream, 0, events), StreamAppend(slot, 0, (target, x.claimed(named)))])
        match table:
            case "failed":
                ledger.append([StreamAppend(slot, 2, (x.vacated(named, None), x.retirement()))])
            case "ended":
                decided = x.retired(review=x.REVIEW)
                ledger.append(
                    [StreamAppend(stream, len(events), (decided,)), StreamAppend(slot, 2, (x.vacated(named),))]
                )
                ledger.append([StreamAppend(slot, 3, (x.slot_held(),))])
            case _:
                more = (x.started(2), x.dispatched(attempt=2))
                ledger.append([StreamAppend(stream, len(events), more)])


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventLedger]:
    folder: Path = tmp_path_factory.mktemp("queried")
    with open_ledger(sqlite_url(folder / "ledger.sqlite"), create=True) as opened:
        _history(opened)
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def asked(request: pytest.FixtureRequest, ledger: EventLedger, tmp_path: Path) -> dict[str, Rows]:
    """What each query of the page answers."""
    if request.param == "sqlite":
        to = sqlite_url(tmp_path / "p.sqlite")
        _project(ledger, to)
        with closing(sqlite3.connect(tmp_path / "p.sqlite")) as connection:
            return {name: connection.execute(query).fetchall() for name, query in QUERIES.items()}
    server: PostgresServer = request.getfixturevalue("postgres")
    schema = f"queried_{uuid4().hex[:12]}"
    place = f"postgresql://reader:{PASSWORD}@127.0.0.1:{server.port}/postgres"
    _project(ledger, f"{place}?schema={schema}")
    with psycopg.connect(place, options=f"-c search_path={schema}") as session:
        return {name: session.execute(query).fetchall() for name, query in QUERIES.items()}


def _project(ledger: EventLedger, to: str) -> None:
    with closing(open_target(to)) as target:
        follower = Follower(ledger, target)
        follower.catch_up(follower.begin())


def test_every_query_of_the_page_is_tried() -> None:
    assert len(QUERIES) == PAGE.count("```sql") == 9


def test_the_queries_answer_what_they_promise(ledger: EventLedger, asked: dict[str, Rows]) -> None:
    assert asked["position"] == [(ledger.position(), 1)]
    assert [(row[1], row[4], row[5]) for row in asked["unfinished"]] == [
        ("sales.unknown", "DISPATCHED", "unknown"),
        ("sales.failed", "FAILED", "not_started"),
    ]
    assert [(row[0], row[3], row[4]) for row in asked["failed"]] == [
        ("sales.failed", "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED", "rows: 0")
    ]
    assert [(row[0], row[2], row[6]) for row in asked["held"]] == [
        ("sales.ended", None, "Ada"),
        ("sales.unknown", "DISPATCHED", None),
    ]
    assert asked["retirements"] == [("sales.failed", 1, 0)]
    assert [(row[0], row[2], row[3], bool(row[4])) for row in asked["live"]] == [("sales.orders", "run-0", 3, False)]
    assert asked["live"][0][5] == x.AT
    assert asked["story"] == []  # of another target
    assert [(row[1], row[2], row[4]) for row in asked["decisions"]] == [
        ("sales.ended", "SlotHeld", None),
        ("sales.ended", "OperationRetired", "the server is gone"),
    ]
    assert [(row[0], row[3], row[4], row[5]) for row in asked["attempts"]] == [("sales.unknown", 2, "DISPATCHED", 0)]
