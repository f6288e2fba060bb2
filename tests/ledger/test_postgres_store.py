"""PostgreSQL under the store contract and under the event sourcing library's own recorder cases, on a real server."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from eventsourcing.tests.persistence import ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase

from dpone.ledger.postgres import PostgresRecorder, open_url
from dpone.ledger.postgres_schema import EVENTS_COLUMNS
from tests.servers.postgres import PASSWORD, PostgresServer

from .contract import StoreContract
from .opening import opened


def fresh_url(server: PostgresServer, *, create: bool = True) -> str:
    """The URL of a schema of its own, holding an empty ledger unless ``create`` is false."""
    rest = f"reader:{PASSWORD}@127.0.0.1:{server.port}/postgres?schema=led_{uuid4().hex[:12]}"
    if create:
        open_url(rest, True).close()
    return f"postgresql://{rest}"


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def url(self, postgres: PostgresServer) -> str:
        return fresh_url(postgres)


class _OnServer:
    """Makes the library's cases run on the real server."""

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> None:
        self.server = postgres

    def create_recorder(self) -> Any:
        recorder = open_url(fresh_url(self.server).removeprefix("postgresql://"), False)
        self.addCleanup(recorder.close)  # type: ignore[attr-defined]
        return recorder


class TestLibraryRecorderCases(_OnServer, ApplicationRecorderTestCase[ApplicationRecorder]):
    pass


class TestLibraryNonInterleaving(_OnServer, NonInterleavingNotificationIDsBaseCase):
    insert_num = 300


# Imported base cases would be collected as tests of their own.
del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase


def test_the_table_of_events_is_the_librarys(postgres: PostgresServer) -> None:
    theirs = PostgresApplicationRecorder(
        PostgresDatastore("postgres", "127.0.0.1", postgres.port, "reader", PASSWORD, schema="public")
    )
    theirs.create_table()
    theirs.datastore.close()
    columns = postgres.execute(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = 'stored_events' ORDER BY ordinal_position"
    )
    assert dict(columns) == EVENTS_COLUMNS
    postgres.execute("DROP TABLE public.stored_events; DROP TYPE public.stored_event_uuid CASCADE")


def test_the_librarys_own_recorder_reads_what_we_wrote(postgres: PostgresServer) -> None:
    url = fresh_url(postgres)
    from .events import some

    with opened(url) as ledger:
        ledger.append([some()])
        assert isinstance(ledger.recorder, PostgresRecorder)
    schema = url.rpartition("=")[2]
    store = PostgresDatastore("postgres", "127.0.0.1", postgres.port, "reader", PASSWORD, schema=schema)
    with store:
        theirs = PostgresApplicationRecorder(store)
        assert [note.id for note in theirs.select_notifications(1, 10)] == [1]
