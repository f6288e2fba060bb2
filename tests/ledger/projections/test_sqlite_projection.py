"""Projections in SQLite files."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpone.domain.errors import ErrorCode
from dpone.ledger.projections.faults import ProjectionFailed
from dpone.ledger.projections.following import Follower
from dpone.ledger.projections.target import open_target
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import EventLedger, open_ledger

from .contract import TargetContract, projected
from .histories import append_lives


class TestSqliteProjection(TargetContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return sqlite_url(tmp_path / "a projection.sqlite")

    def execute(self, url: str, statement: str) -> None:
        path = url.removeprefix("sqlite://").replace("%20", " ")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement.format(p=""))

    def test_only_its_owner_may_read_it(self, url: str, ledger: EventLedger, tmp_path: Path) -> None:
        projected(ledger, open_target(url))
        assert (tmp_path / "a projection.sqlite").stat().st_mode & 0o777 == 0o600

    def test_a_deleted_file_is_made_again(self, url: str, ledger: EventLedger, tmp_path: Path) -> None:
        append_lives(ledger, "orders", 1)
        assert projected(ledger, open_target(url)) == ledger.position()
        for path in tmp_path.glob("a projection.sqlite*"):
            path.unlink()
        assert projected(ledger, open_target(url)) == ledger.position()


def test_the_ledger_itself_is_never_taken_for_a_projection(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "ledger.sqlite")
    with open_ledger(url, create=True) as ledger:
        append_lives(ledger, "orders", 1)
        for attempt in (Follower(ledger, open_target(url)).begin, Follower(ledger, open_target(url)).rebuild):
            with pytest.raises(ProjectionFailed, match="holds other tables"):
                attempt()
        assert len(ledger.read(next(iter(ledger.streams())))) > 10


@pytest.mark.parametrize(
    "url",
    [
        "nothing",
        "mysql://host/db",
        "clickhouse://reference/database",
        "sqlite://host/path",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///tmp/x?mode=rw",
        "postgresql://user:hidden@host/",
        "postgresql://user:hidden@host/db?options=-c",
        "postgresql://user:hidden@host/db?schema=Upper",
    ],
)
def test_a_wrong_url_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ProjectionFailed) as failed:
        open_target(url)
    assert failed.value.code is ErrorCode.REQUEST_INVALID
    assert "hidden" not in failed.value.what + (failed.value.next or "")


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with open_ledger(sqlite_url(tmp_path / "ledger.sqlite"), create=True) as ledger:
        with pytest.raises(ProjectionFailed) as failed:
            projected(ledger, open_target(sqlite_url(tmp_path / "away" / "p.sqlite")))
        assert (failed.value.code, failed.value.passing) == (ErrorCode.CONNECTION_REFUSED, True)
    assert not (tmp_path / "away").exists()


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    made = open_ledger(sqlite_url(tmp_path / "ledger.sqlite"), create=True)
    with made as ledger, pytest.raises(ProjectionFailed, match="not an SQLite file"):
        Follower(ledger, open_target(sqlite_url(text))).rebuild()
    assert text.read_text() == "not a database " * 100


def test_a_postgresql_projection_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.endswith("projections.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ProjectionFailed, match="needs psycopg") as failed:
        open_target("postgresql://localhost/x")
    assert failed.value.next == "pip install 'dpone-replay[postgres]'"
