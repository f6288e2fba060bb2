"""``dpone ledger project`` and ``rebuild`` as they are typed; a follower that outlives its stores' absence."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dpone.ledger.projections.target import open_target
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import EventLedger, open_ledger
from tests.cli.sandbox import Sandbox, ended
from tests.faults.relay import Cut, Relay
from tests.ledger.projections.histories import EVENTS_A_LIFE, append_lives
from tests.servers.postgres import PASSWORD, PostgresServer
from tests.servers.sessions import postgres

__all__ = ["postgres"]
SECONDS = 40
STOP_SECONDS_MAX = 5.0


@pytest.fixture
def ledger(sandbox: Sandbox) -> Iterator[EventLedger]:
    """The home's ledger with one operation in it; no engine."""
    sandbox.home.mkdir()
    with open_ledger(sqlite_url(sandbox.ledger), create=True) as opened:
        append_lives(opened, "orders", 1)
        yield opened


@pytest.fixture
def place(sandbox: Sandbox) -> Path:
    """A file in a folder of its own."""
    (sandbox.folder / "drive").mkdir()
    return sandbox.folder / "drive" / "p.sqlite"


def await_position(to: str, position: int) -> None:
    """Wait until the projection holds it."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with closing(open_target(to)) as target:
            mark = target.mark()
        if mark is not None and mark.position >= position:
            return
        time.sleep(0.1)
    raise AssertionError(f"position {position} was never reached")


def await_said(process: subprocess.Popen[str], text: str) -> None:
    """Read the follower's diagnostics until this is said."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text} was never said")


@pytest.fixture
def followers() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_projecting_again_goes_on_and_a_rebuild_starts_anew(sandbox: Sandbox, ledger: EventLedger, place: Path) -> None:
    to = sqlite_url(place)
    first = sandbox.dpone("ledger", "project", "--to", to, "--format", "json")
    assert (first.document["command"], first.document["passed"]) == ("ledger project", True)
    assert (first.result["position"], first.result["events"]) == (EVENTS_A_LIFE, EVENTS_A_LIFE)
    append_lives(ledger, "items", 1)
    second = sandbox.dpone("ledger", "project", "--to", to, "--format", "json")
    assert (second.result["position"], second.result["events"]) == (2 * EVENTS_A_LIFE, EVENTS_A_LIFE)
    anew = sandbox.dpone("ledger", "rebuild", "--to", to, "--format", "json")
    assert (anew.document["command"], anew.result["events"]) == ("ledger rebuild", 2 * EVENTS_A_LIFE)
    text = sandbox.dpone("ledger", "project", "--to", to)
    assert (text.code, text.out) == (0, f"p.sqlite: position {2 * EVENTS_A_LIFE}, 0 events projected now.\n")


def test_audit_verify_holds_a_projection_against_the_ledger(sandbox: Sandbox, ledger: EventLedger, place: Path) -> None:
    to = sqlite_url(place)
    absent = sandbox.dpone("audit", "verify", "--projection", to)
    assert (absent.code, "There is no projection" in absent.err) == (2, True)
    assert sandbox.dpone("ledger", "project", "--to", to).code == 0
    append_lives(ledger, "items", 1)  # behind is not wrong
    good = sandbox.dpone("audit", "verify", "--projection", to, "--format", "json")
    assert (good.code, good.result["projection"]["position"]) == (0, EVENTS_A_LIFE)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE operations SET state = 'FAILED'")
    bad = sandbox.dpone("audit", "verify", "--projection", to, "--format", "json")
    assert (bad.code, bad.document["passed"]) == (1, False)
    assert bad.result["error_code"] == "DPONE_REPLAY_QUALITY_EVIDENCE_MISMATCH"
    assert "differs in state" in bad.result["projection"]["findings"][0]
    assert bad.result["findings"] == []


def test_what_never_ends_has_no_document(sandbox: Sandbox, ledger: EventLedger, place: Path) -> None:
    refused = sandbox.dpone("ledger", "project", "--to", sqlite_url(place), "--follow", "--format", "json")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_REQUEST_INVALID")
    assert not place.exists()


def test_a_missing_ledger_is_not_waited_for_at_the_start(sandbox: Sandbox, place: Path) -> None:
    refused = sandbox.dpone("ledger", "project", "--to", sqlite_url(place), "--follow")
    assert (refused.code, "DPONE_LEDGER_UNREACHABLE" in refused.err) == (1, True)
    assert not place.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_follower(
    sandbox: Sandbox, ledger: EventLedger, place: Path, number: signal.Signals, followers: list[subprocess.Popen[str]]
) -> None:
    follower = sandbox.start(["ledger", "project", "--to", sqlite_url(place), "--follow"])
    followers.append(follower)
    await_position(sqlite_url(place), EVENTS_A_LIFE)
    append_lives(ledger, "items", 1)
    await_position(sqlite_url(place), 2 * EVENTS_A_LIFE)
    began = time.monotonic()
    follower.send_signal(number)
    stopped = ended(follower)
    assert time.monotonic() - began < STOP_SECONDS_MAX
    assert stopped.code == 128 + number
    assert f"Stopped by {number.name}" in stopped.err
    assert stopped.out.splitlines()[0] == "Following into p.sqlite from position 0."
    assert stopped.out.splitlines()[-1] == f"Position {2 * EVENTS_A_LIFE}."


@pytest.mark.parametrize("away", ["projection", "ledger"])
def test_a_follower_outlives_a_folder_that_goes_away_for_a_while(
    sandbox: Sandbox, ledger: EventLedger, place: Path, away: str, followers: list[subprocess.Popen[str]]
) -> None:
    to = sqlite_url(place)
    follower = sandbox.start(["ledger", "project", "--to", to, "--follow"])
    followers.append(follower)
    await_position(to, EVENTS_A_LIFE)
    folder = place.parent if away == "projection" else sandbox.home
    hidden = folder.with_name("hidden")
    if away == "projection":
        folder.rename(hidden)
        append_lives(ledger, "items", 1)
    else:
        append_lives(ledger, "items", 1)
        folder.rename(hidden)
    await_said(follower, "Waiting for it to come back.")
    assert not folder.exists(), "nothing is made in its place"
    hidden.rename(folder)
    await_position(to, 2 * EVENTS_A_LIFE)
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(SECONDS) == 143


@pytest.fixture
def relay(postgres: PostgresServer) -> Iterator[Relay]:
    made = Relay(postgres.port)
    yield made
    made.close()


def test_a_follower_outlives_a_server_that_falls_silent_and_ends_in_the_middle_of_it(
    sandbox: Sandbox,
    ledger: EventLedger,
    postgres: PostgresServer,
    relay: Relay,
    followers: list[subprocess.Popen[str]],
) -> None:
    sandbox.environment["PGPASSWORD"] = PASSWORD
    through, direct = (
        f"postgresql://reader{secret}@127.0.0.1:{port}/postgres?schema=silent"
        for secret, port in (("", relay.port), (f":{PASSWORD}", postgres.port))
    )
    follower = sandbox.start(["ledger", "project", "--to", through, "--follow"])
    followers.append(follower)
    await_position(direct, EVENTS_A_LIFE)
    relay.silent = True
    append_lives(ledger, "items", 1)
    await_said(follower, "Waiting for it to come back.")
    relay.silent = False
    await_position(direct, 2 * EVENTS_A_LIFE)
    relay.silent = True
    append_lives(ledger, "bills", 1)
    time.sleep(2.5)  # it waits for an answer now
    began = time.monotonic()
    follower.send_signal(signal.SIGTERM)
    stopped = ended(follower)
    assert time.monotonic() - began < STOP_SECONDS_MAX
    assert (stopped.code, PASSWORD in stopped.out + stopped.err) == (143, False)


def test_a_commit_whose_answer_is_lost_is_found_to_be_written(
    sandbox: Sandbox, ledger: EventLedger, relay: Relay
) -> None:
    sandbox.environment["PGPASSWORD"] = PASSWORD
    to = f"postgresql://reader@127.0.0.1:{relay.port}/postgres?schema=lost"
    assert sandbox.dpone("ledger", "project", "--to", to).code == 0
    append_lives(ledger, "items", 1)
    relay.arm(Cut.UNHEARD, lambda data: b"COMMIT" in data)
    lost = sandbox.dpone("ledger", "project", "--to", to)
    assert (lost.code, "DPONE_CONNECTION_REFUSED" in lost.err) == (1, True)
    assert sandbox.dpone("ledger", "project", "--to", to).code == 0
    checked = sandbox.dpone("audit", "verify", "--projection", to)
    assert checked.code == 0, checked.err
