"""``dpone ledger``: a home's ledger moves to PostgreSQL, and a backup is taken into use, by the installed command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from dpone.domain.platform_events import EpochRaised
from dpone.ledger.store import open_ledger
from tests.cli.sandbox import Ended, Sandbox, rows_of
from tests.servers.postgres import PASSWORD, PostgresServer
from tests.servers.sessions import postgres

__all__ = ["postgres"]


@pytest.fixture
def elsewhere(sandbox: Sandbox, postgres: PostgresServer) -> Iterator[str]:
    """The URL of a place in PostgreSQL; the password is in the environment only."""
    sandbox.environment["PGPASSWORD"] = os.environ["PGPASSWORD"] = PASSWORD
    yield f"postgresql://reader@127.0.0.1:{postgres.port}/postgres?schema=led_{uuid4().hex[:12]}"
    os.environ.pop("PGPASSWORD")


def said(ended: Ended) -> Ended:
    assert PASSWORD not in ended.out + ended.err, "a password was printed"
    return ended


def test_a_ledger_moves_to_postgresql_and_the_same_command_replays_there(sandbox: Sandbox, elsewhere: str) -> None:
    assert sandbox.run().code == 0
    old = f"sqlite://{sandbox.ledger}"
    done = said(sandbox.dpone("ledger", "migrate", old, elsewhere, "--format", "json"))
    assert (done.code, done.document["command"], done.result["epoch"]) == (0, "ledger migrate", 2)
    assert (done.result["copied"], done.result["markers_raised"]) == (done.result["events"], 1)

    refused = sandbox.run("r2")
    assert (refused.code, refused.result["error_code"]) == (1, "DPONE_LEDGER_CORRUPT")
    assert "was moved" in refused.result["errors"][0]

    sandbox.environment["DPONE_LEDGER"] = elsewhere
    replay = said(sandbox.run())
    assert (replay.code, replay.result["inserted_rows"]) == (0, 0)
    sandbox.write_rows(rows_of(2))
    assert said(sandbox.run("r2")).code == 0

    again = said(sandbox.dpone("ledger", "migrate", old, elsewhere, "--format", "json"))
    assert (again.code, again.result["copied"], again.result["markers_raised"]) == (0, 0, 0)
    status = said(sandbox.dpone("ledger", "status", "--format", "json"))
    assert (status.result["store"], status.result["sealed"], status.result["epoch"]) == ("postgresql", False, 2)
    assert [one["epoch"] for one in status.result["platforms"]] == [2]
    text = sandbox.dpone("ledger", "status", "--ledger", old)
    assert "sealed: it was moved" in text.out
    assert said(sandbox.dpone("audit", "verify")).code == 0


def test_a_backup_is_refused_until_a_person_takes_it_into_use(sandbox: Sandbox, tmp_path: Path) -> None:
    assert sandbox.run().code == 0
    backup = tmp_path / "backup.sqlite"
    shutil.copy(sandbox.ledger, backup)
    moved = sandbox.dpone("ledger", "migrate", f"sqlite://{sandbox.ledger}", f"sqlite://{tmp_path}/new.sqlite")
    assert moved.code == 0
    assert "Set DPONE_LEDGER" in moved.out
    sandbox.environment["DPONE_LEDGER"] = f"sqlite://{backup}"
    assert sandbox.run("r2").result["error_code"] == "DPONE_LEDGER_CORRUPT"
    done = sandbox.dpone("ledger", "restore", "--reviewed-by", "ada", "--reason", "the disk died", "--format", "json")
    assert (done.code, done.result["epoch"], done.result["markers_raised"]) == (0, 3, 1)
    assert sandbox.run().code == 0
    with open_ledger(f"sqlite://{backup}", create=False) as ledger:
        events = [item.recorded.event for item in ledger.notifications(1, 1000)]
    raised = [event for event in events if isinstance(event, EpochRaised)]
    assert [(event.epoch, event.reviewed_by, event.reason) for event in raised] == [(3, "ada", "the disk died")]
    assert sandbox.dpone("audit", "verify").code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("migrate", "sqlite:///absent.sqlite", "sqlite:///other.sqlite"), "DPONE_LEDGER_UNREACHABLE"),
        (("restore", "--reviewed-by", "", "--reason", "x"), "DPONE_REQUEST_INVALID"),
        (("restore", "--reviewed-by", "ada"), "DPONE_REQUEST_INVALID"),
        (("status", "--ledger", "postgresql://u:s3cret@127.0.0.1:1/db"), "DPONE_LEDGER_UNREACHABLE"),
        (("status", "--ledger", "postgresql://u:s3cret@127.0.0.1:1/db?password=s3cret"), "DPONE_LEDGER_UNREACHABLE"),
        (("status", "--ledger", "keepermap://nowhere/db"), "DPONE_CONNECTION_NOT_FOUND"),
    ],
)
def test_what_cannot_be_done_is_one_document(sandbox: Sandbox, words: tuple[str, ...], code: str) -> None:
    failed = sandbox.dpone("ledger", *words, "--format", "json")
    assert failed.document["passed"] is False
    assert failed.result["error_code"] == code
    assert "s3cret" not in failed.out + failed.err
    assert "127.0.0.1" not in failed.out + failed.err
