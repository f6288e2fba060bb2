"""Ledger URLs: what opens, what is refused, and what opening costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpone.domain.errors import ErrorCode, LedgerFailed
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.sqlite_schema import create_store
from dpone.ledger.store import open_ledger

from .events import CODEC, some


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("keeper://user:secret@host:2181/root", "holds credentials"),
        ("keepermap://target/db", "nothing binds its connection"),
        ("mysql://user:secret@host/db", "not one that this release knows"),
        ("ledger.sqlite", "not one that this release knows"),
        ("", "not one that this release knows"),
        ("sqlite://", "host"),
        ("sqlite://ledger.sqlite", "host"),
        ("sqlite:///", "empty"),
        ("sqlite:///folder/", "slash"),
        ("sqlite:///:memory:", "memory"),
        ("sqlite:///a.sqlite?mode=memory", "query"),
        ("sqlite:///a.sqlite#x", "fragment"),
        ("sqlite:///a%00b", "control character"),
    ],
)
def test_a_wrong_url_is_refused_without_quoting_it(url: str, why: str) -> None:
    with pytest.raises(LedgerFailed, match=why) as caught:
        open_ledger(url, create=True, codec=CODEC)
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert caught.value.exit_code == 2
    assert "secret" not in f"{caught.value.what} {caught.value.next}"


def test_a_store_whose_package_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("psycopg", "psycopg_pool")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("eventsourcing.postgres", "dpone.ledger.postgres"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerFailed, match="needs psycopg, which is not installed") as caught:
        open_ledger("postgresql://u:secret@127.0.0.1:1/x", create=True, codec=CODEC)
    assert caught.value.next == "pip install 'dpone-replay[postgres]'"
    assert caught.value.exit_code == 2


def test_odd_names_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a b%41?#mode=memory&x" / "ü;ledger.sqlite"
    with open_ledger(sqlite_url(path), create=True, codec=CODEC) as ledger:
        ledger.append([some()])
    assert path.is_file()


def test_three_and_four_slashes_mean_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    create_store(path)
    found = set()
    for url in (f"sqlite://{path}", f"sqlite:///{path}"):
        with open_ledger(url, create=False, codec=CODEC) as ledger:
            found.add(ledger.ledger_id)
    assert len(found) == 1


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "ledger.sqlite")
    ledger = open_ledger(url, create=True, codec=CODEC)
    ledger.close()
    ledger.close()
    with open_ledger(url, create=False, codec=CODEC) as again:
        assert again.ledger_id == ledger.ledger_id


def test_the_room_opens_without_the_library() -> None:
    code = "import sys, dpone.ledger; sys.exit('eventsourcing' in sys.modules or 'sqlite3' in sys.modules)"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # it uses SQLite
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False, env=plain).returncode == 0
