"""Eight processes append while a follower, killed again and again, projects: nothing is skipped, nothing twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone.ledger.projections.checking import check_projection
from dpone.ledger.projections.following import Follower
from dpone.ledger.projections.target import open_target
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger
from tests.cli.sandbox import ROOT, Sandbox
from tests.ledger.keeper_server import address_on, made, url_of
from tests.ledger.test_postgres_store import fresh_url
from tests.servers.postgres import PostgresServer

from . import dying
from .contract import kept, projected
from .histories import EVENTS_A_LIFE, append_lives
from .test_postgres_projection import projection_url

WRITERS, LIVES = 8, 6
EVENTS = WRITERS * (LIVES * EVENTS_A_LIFE - (LIVES - 1))
SECONDS = 60


@pytest.fixture(params=["sqlite to sqlite", "postgresql to postgresql", "keeper to sqlite"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A new, empty ledger, and a place where no projection is yet."""
    if request.param == "sqlite to sqlite":
        ledger = sqlite_url(tmp_path / "ledger.sqlite")
        open_ledger(ledger, create=True).close()
        return ledger, sqlite_url(tmp_path / "projection.sqlite")
    if request.param == "keeper to sqlite":
        address = address_on(request.getfixturevalue("zookeeper"))
        made(address).close()
        return url_of(address), sqlite_url(tmp_path / "projection.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    return fresh_url(server), projection_url(server)


@pytest.fixture
def writers(urls: tuple[str, str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Eight that have the ledger open and wait for a word."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.projections.writer", urls[0], f"table_{number}", str(LIVES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for number in range(WRITERS)
    ]
    try:
        for writer in started:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        yield started
    finally:
        for writer in started:
            writer.kill()
            writer.communicate()


def _go(writers: list[subprocess.Popen[str]]) -> None:
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()


def _position(to: str) -> int:
    target = open_target(to)
    try:
        mark = target.mark()
        return 0 if mark is None else mark.position
    finally:
        target.close()


def test_a_follower_that_is_killed_again_and_again_skips_nothing(
    urls: tuple[str, str], writers: list[subprocess.Popen[str]], sandbox: Sandbox
) -> None:
    url, to = urls
    _go(writers)
    deadline, kills, seen = time.monotonic() + SECONDS, 0, 0
    while seen < EVENTS and time.monotonic() < deadline:
        follower = sandbox.start(["ledger", "project", "--to", to, "--ledger", url, "--follow"])
        time.sleep(min(0.8 * 1.2**kills, 15))  # somewhere between its start and its next look, however slow both are
        follower.kill()
        follower.communicate()
        before, seen, kills = seen, _position(to), kills + 1
        assert seen >= before
    assert [writer.wait(SECONDS) for writer in writers] == [0] * WRITERS
    assert (seen, kills > 1) == (EVENTS, True)
    target = open_target(to)
    try:
        with open_ledger(url, create=False) as ledger:
            assert check_projection(ledger, target).findings == ()
        lines = kept(target)["timeline"]
    finally:
        target.close()
    assert [line[0] for line in lines] == list(range(1, EVENTS + 1))
    assert len({(line[1], line[2]) for line in lines}) == EVENTS


def test_rebuilding_again_and_again_during_appends_skips_nothing(
    urls: tuple[str, str], writers: list[subprocess.Popen[str]], sandbox: Sandbox
) -> None:
    """A follower is beside it all the time; both write to the same tables."""
    url, to = urls
    follower = sandbox.start(["ledger", "project", "--to", to, "--ledger", url, "--follow"])
    _go(writers)
    target, rebuilds = open_target(to), 0
    try:
        with open_ledger(url, create=False) as ledger:
            while ledger.position() < EVENTS or rebuilds < 3:
                rebuilding = Follower(ledger, target)
                rebuilding.catch_up(rebuilding.rebuild())
                rebuilds += 1
            assert [writer.wait(SECONDS) for writer in writers] == [0] * WRITERS
            assert projected(ledger, target) == EVENTS
            assert check_projection(ledger, target).findings == ()
        assert follower.poll() is None, "it ended beside a rebuild"
    finally:
        target.close()
        follower.kill()
        follower.communicate()


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_process_that_dies_between_rows_and_position_has_written_neither(urls: tuple[str, str], batch: int) -> None:
    url, to = urls
    with open_ledger(url, create=False) as ledger:
        append_lives(ledger, "orders", 3)
        died = subprocess.run(
            [sys.executable, "-m", "tests.ledger.projections.dying", url, to, str(batch)],
            cwd=ROOT,
            timeout=SECONDS,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL
        target = open_target(to)
        try:
            mark = target.mark()
            assert mark is not None
            assert mark.position == (batch - 1) * dying.BATCH_EVENTS < ledger.position()
            assert len(kept(target)["timeline"]) == mark.position
            assert projected(ledger, target) == ledger.position()
            assert check_projection(ledger, target).findings == ()
        finally:
            target.close()
