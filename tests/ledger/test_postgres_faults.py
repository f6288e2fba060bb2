"""How a ledger in PostgreSQL fails, on a real server: what is told, what is safe, and what is never printed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from dpone.domain.errors import AppendUnknown, ErrorCode, LedgerFailed, LedgerMissing
from dpone.domain.ports import StreamAppend
from dpone.ledger.postgres import open_store, open_url
from dpone.ledger.postgres_url import parse
from dpone.ledger.store import EventLedger, open_ledger
from dpone.ledger.verify import verify_ledger
from tests.faults.relay import Cut, Relay
from tests.servers.postgres import PASSWORD, PostgresServer, binaries, postgres_server
from tests.servers.processes import started, stop, unprivileged
from tests.servers.required import require

from .contract import SECONDS, acknowledged_until, noted, start_writers
from .events import CODEC, Noted, some
from .opening import opened
from .test_postgres_store import fresh_url

BOUND = 5.0


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return fresh_url(postgres)


@pytest.fixture
def schema(url: str) -> str:
    return url.rpartition("=")[2]


@pytest.fixture
def relay(postgres: PostgresServer) -> Iterator[Relay]:
    made = Relay(postgres.port)
    yield made
    made.close()


def through(relay: Relay, schema: str, wait_seconds: float = 2) -> EventLedger:
    place = parse(f"reader:{PASSWORD}@127.0.0.1:{relay.port}/postgres?schema={schema}")
    recorder = open_store(place, wait_seconds=wait_seconds)
    return EventLedger(recorder, CODEC, recorder.identity())


def failure(url: str, *, create: bool = False) -> LedgerFailed:
    with pytest.raises(LedgerFailed) as caught:
        open_ledger(url, create=create, codec=CODEC)
    told = f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    assert not any(secret in told for secret in (PASSWORD, "wr0ng", "127.0.0.1", "reader", "localhost"))
    return caught.value


# ------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("", "names no database"),
        ("reader:wr0ng@127.0.0.1", "names no database"),
        ("127.0.0.1/db?schema=pg_catalog", "schema"),
        ("127.0.0.1/db?schema=Upper", "schema"),
        ("127.0.0.1/db?schema=a;b", "schema"),
        ("127.0.0.1/db?schema=", "schema"),
        ("127.0.0.1/db?schema=a&schema=b", "twice"),
        ("127.0.0.1/db?options=-csynchronous_commit%3Doff", "not allowed"),
        ("127.0.0.1/db?schema", "name=value"),
        ("127.0.0.1:port/db", "reached"),
        ("reader:wr0ng@[::1/db", "does not understand"),
    ],
)
def test_a_wrong_url_is_refused_without_quoting_it(rest: str, why: str) -> None:
    assert why in failure(f"postgresql://{rest}").what


def test_what_is_not_there_is_never_created_by_opening(postgres: PostgresServer) -> None:
    absent = fresh_url(postgres, create=False)
    assert isinstance(failure(absent), LedgerMissing)
    assert isinstance(failure(absent.replace("/postgres?", "/nowhere?"), create=True), LedgerMissing)
    assert not postgres.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{absent.rpartition('=')[2]}'")


def test_wrong_password_and_nobody_listening_are_told_apart(url: str, postgres: PostgresServer) -> None:
    assert "refused the login" in failure(url.replace(PASSWORD, "wr0ng")).what
    nobody = failure(url.replace(f":{postgres.port}/", ":1/"))
    assert "cannot be reached" in nobody.what
    assert not isinstance(nobody, LedgerMissing)


def test_a_schema_with_other_tables_is_no_ledger(postgres: PostgresServer) -> None:
    url = fresh_url(postgres, create=False)
    schema = url.rpartition("=")[2]
    postgres.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.stored_events (a int)")
    assert failure(url, create=True).code is ErrorCode.LEDGER_CORRUPT
    postgres.execute(f"CREATE TABLE {schema}.ledger_identity (a int)")
    assert failure(url).code is ErrorCode.LEDGER_CORRUPT


def test_of_many_that_create_at_once_one_does(postgres: PostgresServer) -> None:
    url = fresh_url(postgres, create=False)

    def create(_: int) -> str:
        with open_ledger(url, create=True, codec=CODEC) as ledger:
            return ledger.ledger_id

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(create, range(6)))) == 1


def test_a_newer_format_is_refused_before_anything_is_written(url: str, schema: str, postgres: PostgresServer) -> None:
    postgres.execute(f"ALTER TABLE {schema}.ledger_identity ADD COLUMN later text")
    postgres.execute(f"UPDATE {schema}.ledger_identity SET format = 2")
    assert failure(url, create=True).code is ErrorCode.LEDGER_TOO_NEW


# ---------------------------------------------------------------------------------------- what the database refuses


def test_the_database_itself_keeps_history_as_it_is(url: str, schema: str, postgres: PostgresServer) -> None:
    with opened(url) as ledger:
        ledger.append([noted(uuid4(), 0, "a", "b")])
        for statement in (
            "UPDATE {}.stored_events SET topic = 'x'",
            "DELETE FROM {}.stored_events",
            "TRUNCATE {}.stored_events",
            "DELETE FROM {}.ledger_identity",
            "INSERT INTO {}.stored_events VALUES (gen_random_uuid(), 5, 't', 's')",
            "INSERT INTO {}.ledger_identity SELECT * FROM {}.ledger_identity",
        ):
            with pytest.raises(psycopg.Error):
                postgres.execute(statement.format(schema, schema))
        assert verify_ledger(ledger).passed


def test_a_sealed_ledger_takes_nothing_from_anybody_and_stays_sealed(
    url: str, schema: str, postgres: PostgresServer
) -> None:
    stream = uuid4()
    with opened(url) as ledger, opened(url) as other:
        other.append([noted(stream, 0, "a")])
        ledger.recorder.seal()
        ledger.recorder.seal()
        with pytest.raises(LedgerFailed, match="was migrated") as caught:
            other.append([noted(stream, 1, "b")])
        assert caught.value.code is ErrorCode.LEDGER_CORRUPT
        assert ledger.recorder.identity().sealed
        assert len(ledger.read(stream)) == 1
    for statement in (
        f"INSERT INTO {schema}.stored_events VALUES (gen_random_uuid(), 1, 't', 's')",
        f"UPDATE {schema}.ledger_identity SET sealed = false",
    ):
        with pytest.raises(psycopg.Error):
            postgres.execute(statement)


def test_who_opened_it_before_it_was_restored_appends_nothing_more(url: str) -> None:
    with opened(url) as before, opened(url) as other:
        before.append([some()])
        other.recorder.raise_epoch(2)
        with pytest.raises(LedgerFailed, match="replaced, moved or restored"):
            before.append([some()])
        assert before.position() == 1
    with opened(url) as after:
        assert after.epoch == 2
        after.append([some()])


def test_a_guard_that_was_taken_away_is_found(url: str, schema: str, postgres: PostgresServer) -> None:
    with opened(url) as ledger:
        postgres.execute(f"ALTER TABLE {schema}.stored_events DISABLE TRIGGER stored_events_stay")
        postgres.execute(
            f"CREATE OR REPLACE FUNCTION {schema}.stored_events_next() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RETURN NEW; END'"
        )
        found = [str(finding) for finding in verify_ledger(ledger).findings]
    assert len(found) == 2
    assert "stored_events_next" in found[0]


def test_a_role_with_exactly_the_documented_grants_appends_and_cannot_insert(
    url: str, schema: str, postgres: PostgresServer
) -> None:
    role = f"run_{schema}"
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'r0le'; ALTER ROLE {role} SET synchronous_commit = off")
    postgres.execute(
        f"GRANT USAGE ON SCHEMA {schema} TO {role}; "
        f"GRANT SELECT ON {schema}.stored_events, {schema}.ledger_identity TO {role}; "
        f"GRANT EXECUTE ON FUNCTION {schema}.ledger_append TO {role}"
    )
    theirs = url.replace(f"reader:{PASSWORD}", f"{role}:r0le")
    with opened(theirs) as ledger:
        ledger.append([some()])
        assert verify_ledger(ledger).passed
        recorder: Any = ledger.recorder
        with recorder._store.get_connection() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == {"synchronous_commit": "on"}
        with pytest.raises(LedgerFailed, match="lacks a privilege"):
            recorder.seal()
        with recorder._store.get_connection() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"INSERT INTO {schema}.stored_events VALUES (gen_random_uuid(), 1, 't', 's', 0)")


# ------------------------------------------------------------------------------------------------- lost and silent


def test_a_reply_lost_on_the_way_is_found_to_be_stored_once(relay: Relay, schema: str) -> None:
    with through(relay, schema) as ledger:
        stream = uuid4()
        relay.arm(Cut.UNHEARD, lambda data: b"ledger_append" in data)
        ledger.append([noted(stream, 0, "a", "b")])
        ledger.append([noted(stream, 2, "c")])
        assert (relay.hits, len(ledger.read(stream)), ledger.position()) == (1, 3, 3)


def test_a_request_lost_on_the_way_is_sent_once_more(relay: Relay, schema: str) -> None:
    with through(relay, schema) as ledger:
        relay.arm(Cut.BEFORE, lambda data: b"ledger_append" in data)
        ledger.append([some()])
        assert (relay.hits, ledger.position()) == (1, 1)


def test_a_server_that_falls_silent_is_waited_for_within_a_bound(relay: Relay, schema: str, url: str) -> None:
    with through(relay, schema, wait_seconds=1) as ledger:
        ledger.append([some()])
        relay.silent = True
        begun = time.monotonic()
        with pytest.raises(AppendUnknown) as caught:
            ledger.append([some()])
        assert time.monotonic() - begun < 4 * BOUND
        assert caught.value.next
    with opened(url) as again:
        assert verify_ledger(again).passed


def test_a_lock_that_somebody_holds_is_waited_for_within_a_bound(
    relay: Relay, schema: str, postgres: PostgresServer
) -> None:
    holder = psycopg.connect(host="127.0.0.1", port=postgres.port, user="reader", password=PASSWORD, dbname="postgres")
    with through(relay, schema, wait_seconds=1) as ledger, holder:
        holder.execute(f"LOCK TABLE {schema}.stored_events IN ACCESS SHARE MODE")
        ledger.append([some()])  # readers stop nobody
        holder.rollback()
        holder.execute(f"LOCK TABLE {schema}.stored_events IN EXCLUSIVE MODE")
        with pytest.raises(LedgerFailed, match="locked by another session"):
            ledger.append([some()])
        assert ledger.position() == 1
        holder.rollback()
        ledger.append([some()])


def test_a_session_that_the_server_ended_is_replaced_without_a_word(url: str, postgres: PostgresServer) -> None:
    with opened(url) as ledger:
        ledger.append([some()])
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='dpone ledger'")
        time.sleep(0.1)
        ledger.append([some()])
        assert ledger.position() == 2


def test_a_server_killed_in_the_middle_of_appends_keeps_what_it_acknowledged() -> None:
    require(binaries() is not None, "PostgreSQL")
    with postgres_server() as server:
        url = fresh_url(server)
        (writer,) = start_writers(("flood", url, "100000"))
        _, last = acknowledged_until(lambda: stop(server.process, signal.SIGQUIT), writer)
        assert "cannot be reached" in failure(url).what
        with _started_again(server), opened(url) as ledger:
            assert verify_ledger(ledger).passed
            assert last <= ledger.position() <= last + 2
            ledger.append([StreamAppend(uuid4(), 0, (Noted("goes on"),))])


@contextmanager
def _started_again(server: PostgresServer) -> Iterator[None]:
    programs = binaries()
    assert programs is not None
    options = ["-clisten_addresses=127.0.0.1", f"-cport={server.port}", f"-cunix_socket_directories={server.folder}"]

    def answers() -> bool:
        try:
            return bool(server.execute("SELECT 1"))
        except psycopg.Error:
            return False

    command = [str(programs / "postgres"), "-D", str(server.folder / "data"), *options]
    process = started(command, server.folder, answers, unprivileged(), seconds=60)
    assert process is not None
    try:
        yield
    finally:
        stop(process, signal.SIGQUIT)


def test_followers_skip_nothing_while_eight_write(url: str) -> None:
    writers = start_writers(*[("flood", url, "15")] * 8)
    seen: list[int] = []
    end = time.monotonic() + SECONDS
    with opened(url) as ledger:
        while len(seen) < 240 and time.monotonic() < end:
            seen += [item.position for item in ledger.notifications(seen[-1] + 1 if seen else 1, 7)]
        for writer in writers:
            writer.communicate(timeout=SECONDS)
    assert seen == list(range(1, 241))


def test_libpqs_own_variable_gives_the_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = url.removeprefix("postgresql://").replace(f":{PASSWORD}", "")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(LedgerFailed):
        open_url(without, False)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with closing(open_url(without, False)) as recorder:
        assert recorder.identity()
