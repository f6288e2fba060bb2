"""Keeper under the store contract and under the event sourcing library's own recorder cases, on a real ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest
from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.tests.persistence import ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase

from tests.servers.zookeeper import ZooKeeper

from .contract import StoreContract
from .keeper_server import address_on, made, url_of


class TestKeeperStore(StoreContract):
    @pytest.fixture
    def url(self, zookeeper: ZooKeeper) -> str:
        address = address_on(zookeeper)
        made(address).close()
        return url_of(address)


class _OnServer:
    """Makes the library's cases run on a real server."""

    _keeper: ZooKeeper

    @pytest.fixture(autouse=True)
    def _server(self, zookeeper: ZooKeeper) -> None:
        self._keeper = zookeeper

    def create_recorder(self) -> Any:
        recorder = made(address_on(self._keeper))
        self.addCleanup(recorder.close)  # type: ignore[attr-defined]
        return recorder


class TestLibraryRecorderCases(_OnServer, ApplicationRecorderTestCase[ApplicationRecorder]):
    pass


class TestLibraryNonInterleaving(_OnServer, NonInterleavingNotificationIDsBaseCase):
    insert_num = 300


# Imported base cases would be collected as tests of their own.
del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase
