"""SQLite under the store contract and under the event sourcing library's own recorder cases."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore
from eventsourcing.tests.persistence import ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase

from dpone.ledger.sqlite import SqliteRecorder, open_store, sqlite_url
from dpone.ledger.sqlite_schema import STORED_EVENTS, create_store

from .contract import StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        path = tmp_path / "a folder" / "ledger.sqlite"
        assert create_store(path)
        return sqlite_url(path)


class _OnDisk:
    """Makes the library's cases run on a real file."""

    recorder: SqliteRecorder

    def create_recorder(self) -> Any:
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)  # type: ignore[attr-defined]
        create_store(folder / "ledger.sqlite")
        recorder = open_store(folder / "ledger.sqlite")
        self.addCleanup(recorder.close)  # type: ignore[attr-defined]
        return recorder


class TestLibraryRecorderCases(_OnDisk, ApplicationRecorderTestCase[ApplicationRecorder]):
    pass


class TestLibraryNonInterleaving(_OnDisk, NonInterleavingNotificationIDsBaseCase):
    insert_num = 300


# Imported base cases would be collected as tests of their own.
del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase


def test_the_table_of_events_is_the_librarys(tmp_path: Path) -> None:
    theirs = SQLiteApplicationRecorder(SQLiteDatastore(f"file:{tmp_path / 'theirs.sqlite'}?mode=rwc"))
    assert theirs.create_table_statements == [STORED_EVENTS]
    theirs.datastore.close()
