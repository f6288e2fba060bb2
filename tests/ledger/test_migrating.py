"""Moving a ledger between real stores, killed at every step; and taking a backup into use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dpone.domain.errors import ErrorCode, LedgerFailed
from dpone.domain.ports import StreamAppend
from dpone.ledger.migrating import Moved, migrate, restore
from dpone.ledger.recorder import LedgerIdentity, ReplyLost
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import EventLedger, open_ledger
from tests.servers.zookeeper import ZooKeeper

from .embedded_sql import PORT_VARIABLE, connect, end_engine
from .events import CODEC, Noted
from .opening import opened
from .test_postgres_store import fresh_url

LEGAL: Callable[..., None] = lambda stream, recorded: None  # noqa: E731


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Names:
    """Platforms that answer to a ledger, as far as moving one is concerned."""

    at: int = 1
    recorded: list[int] = field(default_factory=list)
    kill: str = ""

    def epoch(self, ledger_id: str) -> int:
        return self.at

    def record(self, ledger: EventLedger, epoch: int, reason: str) -> int:
        self._maybe("record")
        if epoch in self.recorded:
            return 0
        self.recorded.append(epoch)
        return 1

    def raise_epoch(self, ledger_id: str, epoch: int) -> int:
        self._maybe("raise")
        changed = int(self.at < epoch)
        self.at = max(self.at, epoch)
        return changed

    def _maybe(self, step: str) -> None:
        if self.kill == step:
            raise Killed


STORES = ["sqlite", "postgresql", "keeper", "keepermap"]


@pytest.fixture(scope="module")
def engine(zookeeper: ZooKeeper) -> Iterator[None]:
    """KeeperMap's SQL in this process."""
    os.environ[PORT_VARIABLE] = str(zookeeper.port)
    yield
    os.environ.pop(PORT_VARIABLE)
    end_engine()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The URL of a place where no ledger is, on each kind of store."""

    def new(kind: str) -> str:
        if kind == "sqlite":
            return sqlite_url(tmp_path / f"{uuid4().hex}.sqlite")
        if kind == "postgresql":
            return fresh_url(request.getfixturevalue("postgres"), create=False)
        if kind == "keeper":
            return f"keeper://127.0.0.1:{request.getfixturevalue('zookeeper').port}/{uuid4().hex}"
        request.getfixturevalue("engine")
        return f"keepermap://embedded/led_{uuid4().hex[:12]}"

    return new


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A ledger of 250 events in three streams."""
    return filled(sqlite_url(tmp_path / "old.sqlite"))


def filled(url: str) -> str:
    with made(url) as ledger:
        for _ in range(2):
            ledger.append([StreamAppend(uuid4(), 0, tuple(Noted("x" * 3000, number) for number in range(100)))])
        ledger.append([StreamAppend(uuid4(), 0, tuple(Noted("ü", number) for number in range(50)))])
    return url


@pytest.fixture(params=STORES)
def target(request: pytest.FixtureRequest, place: Callable[[str], str]) -> str:
    return place(request.param)


def made(url: str, **rest: Any) -> EventLedger:
    return open_ledger(url, create=True, codec=CODEC, connect=connect, **rest)


def moved(source: str, target: str, names: Names, break_copy: Callable[[Any], None] = lambda copy: None) -> Moved:
    def open_copy(identity: LedgerIdentity) -> EventLedger:
        ledger = made(target, identity=identity)
        break_copy(ledger)
        return ledger

    with opened(source) as old:
        return migrate(old, open_copy, names, LEGAL)


def rows(url: str) -> list[Any]:
    with opened(url) as ledger:
        return list(ledger.raw_rows())


def test_a_move_copies_every_byte_seals_the_old_ledger_and_raises_the_epoch(source: str, target: str) -> None:
    names = Names()
    with opened(source) as old:
        ledger_id = old.ledger_id
        done = moved(source, target, names)
        stream = next(iter(old.streams()))
        with pytest.raises(LedgerFailed, match="was migrated") as caught:
            old.append([StreamAppend(stream, 100, (Noted("late"),))])
        assert caught.value.code is ErrorCode.LEDGER_CORRUPT
    assert (done.events, done.copied, done.epoch, names.at) == (250, 250, 2, 2)
    assert rows(target) == rows(source)
    with opened(target) as new:
        assert (new.ledger_id, new.epoch) == (ledger_id, 2)
        new.append([StreamAppend(stream, 100, (Noted("goes on"),))])
    again = moved(source, target, names)
    assert (again.copied, again.events, names.recorded) == (0, 250, [2])


@pytest.mark.parametrize("kind", STORES[1:])
def test_a_ledger_moves_away_from_every_store(kind: str, place: Callable[[str], str]) -> None:
    names, there, here = Names(), filled(place(kind)), place("sqlite")
    done = moved(there, here, names)
    assert (done.events, done.copied, done.epoch) == (250, 250, 2)
    assert rows(here) == rows(there)
    with opened(there) as old, pytest.raises(LedgerFailed, match="was migrated"):
        old.append([StreamAppend(next(iter(old.streams())), 100, (Noted("late"),))])


@pytest.mark.parametrize("kind", STORES[1:])
def test_every_store_is_taken_into_use_as_a_backup(kind: str, place: Callable[[str], str]) -> None:
    url, names = filled(place(kind)), Names(at=3)
    done = restore(lambda: opened(url), names, LEGAL, "the disk died")
    assert (done.events, done.epoch, names.at) == (250, 4, 4)
    with opened(url) as ledger:
        assert ledger.epoch == 4


@pytest.mark.parametrize("step", ["seal", "first", "second", "lost", "record", "raise"])
def test_a_move_that_was_killed_is_finished_by_the_same_command(source: str, target: str, step: str) -> None:
    names = Names(kill=step)
    with pytest.raises(Killed):
        moved(source, target, names, lambda copy: _break(copy, step))
    assert names.at == 1, "a platform answers to a copy that is not finished"
    names.kill = ""
    done = moved(source, target, names)
    assert (done.epoch, names.at, names.recorded) == (2, 2, [2])
    assert rows(target) == rows(source)


def _break(copy: EventLedger, step: str) -> None:
    recorder: Any = copy.recorder
    insert, calls = recorder.insert_events, [0]

    def breaking(events: Any, **rest: Any) -> Any:
        calls[0] += 1
        if step == "seal" or (step == "second" and calls[0] == 2):
            raise Killed
        if step == "lost" and calls[0] == 1:
            insert(events, **rest)
            raise ReplyLost
        answer = insert(events, **rest)
        if step == "first" or (step == "lost" and calls[0] == 2):
            raise Killed
        return answer

    recorder.insert_events = breaking


def test_a_place_that_holds_another_ledger_is_refused_and_nothing_is_sealed(source: str, target: str) -> None:
    with made(target):
        pass
    with pytest.raises(LedgerFailed, match="another ledger") as caught:
        moved(source, target, Names())
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    with opened(source) as old:
        assert not old.recorder.identity().sealed
        with pytest.raises(LedgerFailed, match="this very ledger"):
            moved(source, source, Names())


def test_a_copy_that_differs_is_found_before_any_platform_answers_to_it(source: str, tmp_path: Path) -> None:
    target, names = sqlite_url(tmp_path / "new.sqlite"), Names(kill="record")
    with pytest.raises(Killed):
        moved(source, target, names)
    with opened(target) as copy:
        copy.append([StreamAppend(uuid4(), 0, (Noted("a stranger"),))])
    names.kill = ""
    assert moved(source, target, names).events == 250  # what stands after the last row is a ledger in use
    elsewhere = sqlite_url(tmp_path / "third.sqlite")
    with opened(source) as old:
        wanted = LedgerIdentity(old.ledger_id, 2, 1, False)
    with open_ledger(elsewhere, create=True, codec=CODEC, identity=wanted) as copy:
        copy.append([StreamAppend(uuid4(), 0, (Noted("a stranger"),))])
    with pytest.raises(LedgerFailed) as caught:
        moved(source, elsewhere, Names(at=1))
    assert caught.value.code is ErrorCode.EVIDENCE_INVALID


def test_a_backup_is_taken_into_use_above_every_epoch_that_was_used(source: str, tmp_path: Path) -> None:
    backup = tmp_path / "backup.sqlite"
    shutil.copy(tmp_path / "old.sqlite", backup)
    names = Names(at=3, kill="raise")
    with pytest.raises(Killed):
        restore(lambda: opened(sqlite_url(backup)), names, LEGAL, "the disk died")
    names.kill = ""
    done = restore(lambda: opened(sqlite_url(backup)), names, LEGAL, "the disk died")
    assert (done.epoch, names.at, names.recorded) == (4, 4, [4])
    with opened(sqlite_url(backup)) as restored:
        assert restored.epoch == 4


def test_a_sealed_backup_is_not_taken_into_use(source: str) -> None:
    with opened(source) as old:
        old.recorder.seal()
    with pytest.raises(LedgerFailed, match="sealed"):
        restore(lambda: opened(source), Names(), LEGAL, "why not")
