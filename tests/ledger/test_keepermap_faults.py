"""How a ledger in KeeperMap fails: the modern engine in this process, a real ZooKeeper that is frozen and killed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from dpone.domain.errors import AppendConflict, AppendUnknown, ErrorCode, LedgerFailed, LedgerMissing
from dpone.domain.ports import StreamAppend
from dpone.ledger import keepermap_layout as layout
from dpone.ledger.keepermap import create_store, open_store
from dpone.ledger.sql import SqlFailed
from dpone.ledger.store import EventLedger, open_ledger
from dpone.ledger.verify import verify_ledger
from tests.servers.zookeeper import ZooKeeper

from .contract import SECONDS, noted, start_writers
from .embedded_sql import PORT_VARIABLE, EmbeddedSql, connect, end_engine
from .events import CODEC, Noted, some
from .keeper_server import freeze
from .opening import opened
from .test_keepermap_store import fresh_url

pytestmark = pytest.mark.xdist_group("keepermap")


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    yield
    end_engine()


@pytest.fixture(autouse=True)
def keeper(zookeeper: ZooKeeper) -> Iterator[ZooKeeper]:
    os.environ[PORT_VARIABLE] = str(zookeeper.port)
    yield zookeeper
    os.environ.pop(PORT_VARIABLE)


class Lossy:
    """A real session, whose next inserts lose their answers: ``stored`` says whether they were done."""

    def __init__(self, *stored: bool, exists: bool = False) -> None:
        self.session = connect("")
        self.losses = list(stored)
        self.exists = exists

    def run(self, statement: str) -> Sequence[Sequence[str]]:
        if not self.losses or not statement.startswith("INSERT"):
            return self.session.run(statement)
        if self.losses.pop(0):
            self.session.run(statement)
        raise SqlFailed(999, exists=self.exists)

    def close(self) -> None:
        pass


def over(url: str, session: Any) -> EventLedger:
    database = url.rpartition("/")[2]
    recorder = open_store(session, database, f"embedded/{database}")
    return EventLedger(recorder, CODEC, recorder.identity())


@pytest.mark.parametrize(
    "rest", ["", "ref", "ref/", "/db", "ref/db/more", "ref/db;", "user:s3cret@host/db", "ref/db?x=1", "ref/1db"]
)
def test_a_wrong_url_is_refused_without_quoting_it(rest: str) -> None:
    with pytest.raises(LedgerFailed) as caught:
        open_ledger(f"keepermap://{rest}", create=True, codec=CODEC, connect=connect)
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert "s3cret" not in f"{caught.value.what} {caught.value.next}"


def test_opening_creates_nothing() -> None:
    database = f"led_{uuid4().hex[:12]}"
    with pytest.raises(LedgerMissing):
        open_ledger(f"keepermap://embedded/{database}", create=False, codec=CODEC, connect=connect)
    assert not connect("").run(f"SELECT name FROM system.databases WHERE name = '{database}'")
    for statement in layout.creating(database):
        connect("").run(statement)
    with pytest.raises(LedgerMissing):  # tables without an identity record
        open_ledger(f"keepermap://embedded/{database}", create=False, codec=CODEC, connect=connect)


def test_creating_twice_keeps_the_first_identity() -> None:
    url = fresh_url()
    with opened(url) as ledger, open_ledger(url, create=True, codec=CODEC, connect=connect) as again:
        assert again.ledger_id == ledger.ledger_id


def test_a_server_that_is_not_strict_is_refused_at_provisioning() -> None:
    class Loose(EmbeddedSql):
        def run(self, statement: str) -> Sequence[Sequence[str]]:
            return super().run(statement.replace("keeper_map_strict_mode = 1", "keeper_map_strict_mode = 0"))

    strict = connect("")
    with pytest.raises(LedgerFailed, match="strict mode does not hold"):
        create_store(Loose(strict.engine, strict.lock), f"led_{uuid4().hex[:12]}", "it")


def test_a_newer_format_is_refused() -> None:
    url = fresh_url()
    database = url.rpartition("/")[2]
    connect("").run(f"INSERT INTO {database}.ledger_identity VALUES ('identity/000002', '{uuid4()}', 2, 2)")
    with pytest.raises(LedgerFailed) as caught:
        opened(url)
    assert caught.value.code is ErrorCode.LEDGER_TOO_NEW


@pytest.mark.parametrize("exists", [True, False])
def test_an_answer_that_own_rows_exist_is_own_success(exists: bool) -> None:
    url, stream = fresh_url(), uuid4()
    with over(url, Lossy(True, exists=exists)) as ledger:
        ledger.append([noted(stream, 0, "a", "b")])
        ledger.append([noted(stream, 2, "c")])
        assert [item.version for item in ledger.read(stream)] == [1, 2, 3]
        assert ledger.position() == 3
        assert verify_ledger(ledger).passed


def test_an_insert_that_was_lost_before_it_arrived_is_sent_once_more() -> None:
    with over(fresh_url(), Lossy(False)) as ledger:
        ledger.append([some()])
        assert ledger.position() == 1


def test_a_late_copy_of_a_lost_insert_can_do_nothing() -> None:
    url, stream = fresh_url(), uuid4()
    late: list[str] = []

    class Late(Lossy):
        def run(self, statement: str) -> Sequence[Sequence[str]]:
            if statement.startswith("INSERT") and self.losses:
                late.append(statement)
            return super().run(statement)

    with over(url, Late(False)) as ledger:
        ledger.append([noted(stream, 0, "a")])
        with pytest.raises(SqlFailed) as refused:
            connect("").run(late[0])
        assert refused.value.exists
        assert (ledger.position(), len(ledger.read(stream))) == (1, 1)


def test_a_frozen_keeper_ends_in_unknown_and_what_arrived_late_is_found(keeper: ZooKeeper) -> None:
    url, stream = fresh_url(), uuid4()
    with opened(url) as ledger:
        ledger.append([noted(stream, 0, "a")])
        begun = time.monotonic()
        try:
            freeze(keeper)
            with pytest.raises(AppendUnknown):
                ledger.append([noted(stream, 1, "b")])
        finally:
            keeper.thaw()
        assert time.monotonic() - begun < 25
    with _answering(url) as again:
        versions = len(again.read(stream))
        assert versions in (1, 2)
        again.append([noted(stream, versions, "c")])
        assert verify_ledger(again).passed


def test_a_restarted_keeper_holds_what_was_acknowledged(keeper: ZooKeeper) -> None:
    url, stream = fresh_url(), uuid4()
    with opened(url) as ledger:
        ledger.append([noted(stream, 0, "a")])
        keeper.kill()
        try:
            with pytest.raises(LedgerFailed) as caught:
                ledger.append([noted(stream, 1, "b")])
            assert "127.0.0.1" not in caught.value.what
        finally:
            keeper.start()
    with _answering(url) as again:
        assert len(again.read(stream)) == 1
        again.append([noted(stream, 1, "b")])


def _answering(url: str) -> EventLedger:
    end = time.monotonic() + 20
    while True:
        try:
            return opened(url)
        except (LedgerFailed, SqlFailed):
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


def test_a_seal_stands_in_the_way_of_every_later_append() -> None:
    url, stream = fresh_url(), uuid4()
    with opened(url) as ledger, opened(url) as stale:
        stale.append([noted(stream, 0, "a")])
        ledger.recorder.seal()
        ledger.recorder.seal()
        for writer in (stale, ledger):
            with pytest.raises(LedgerFailed, match="was migrated"):
                writer.append([noted(stream, 1, "b")])
        assert ledger.recorder.identity().sealed
        assert (ledger.position(), len(ledger.notifications(1, 10))) == (1, 1)
        assert verify_ledger(ledger).passed
    with opened(url) as again:
        assert again.recorder.identity().sealed


def test_an_epoch_is_raised_by_a_further_record() -> None:
    url = fresh_url()
    with opened(url) as ledger:
        ledger.recorder.raise_epoch(3)
        ledger.recorder.raise_epoch(3)
        assert ledger.recorder.identity().epoch == 3
    database = url.rpartition("/")[2]
    assert len(connect("").run(layout.select_identity(database))) == 2


def test_more_than_keeper_carries_is_refused_before_it_is_sent() -> None:
    with opened(fresh_url()) as ledger:
        with pytest.raises(LedgerFailed, match="900 KiB"):
            ledger.append([StreamAppend(uuid4(), 0, tuple(Noted("x" * 60_000, number) for number in range(16)))])
        ledger.append([StreamAppend(uuid4(), 0, tuple(Noted("x" * 60_000, number) for number in range(14)))])
        assert ledger.position() == 14


@pytest.mark.parametrize("kind", ["stream", "log"])
def test_a_row_that_was_removed_is_found(kind: str) -> None:
    url, stream = fresh_url(), uuid4()
    with opened(url) as ledger:
        ledger.append([noted(stream, 0, "a", "b", "c")])
        key = layout.stream_key(stream, 2) if kind == "stream" else layout.log_key(2)
        connect("").run(f"ALTER TABLE {url.rpartition('/')[2]}.stored_events DELETE WHERE key = '{key}'")
        assert not verify_ledger(ledger).passed


def test_pages_hold_streams_and_logs_longer_than_one_question() -> None:
    url, stream = fresh_url(), uuid4()
    with opened(url) as ledger:
        for start in range(0, 500, 100):
            ledger.append([noted(stream, start, *(str(number) for number in range(start, start + 100)))])
        assert [item.event.text for item in ledger.read(stream)] == [str(number) for number in range(500)]  # type: ignore[attr-defined]
        assert verify_ledger(ledger).events == 500
    with opened(url) as again:
        assert again.position() == 500
        with pytest.raises(AppendConflict):
            again.append([noted(stream, 0, "x")])


def test_followers_skip_nothing_while_four_processes_write() -> None:
    url = fresh_url()
    writers = start_writers(*[("flood", url, "10")] * 4)
    seen: list[int] = []
    end = time.monotonic() + SECONDS
    with opened(url) as ledger:
        while len(seen) < 80 and time.monotonic() < end:
            seen += [item.position for item in ledger.notifications(seen[-1] + 1 if seen else 1, 7)]
    for writer in writers:
        writer.communicate(timeout=SECONDS)
    assert seen == list(range(1, 81))
