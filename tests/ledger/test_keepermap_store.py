"""KeeperMap under the store contract and under the event sourcing library's own recorder cases: the modern engine in
this process, a real ZooKeeper behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.tests.persistence import ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase

from dpone.ledger.store import open_ledger
from tests.servers.zookeeper import ZooKeeper

from .contract import StoreContract
from .embedded_sql import PORT_VARIABLE, connect, end_engine
from .events import CODEC

pytestmark = pytest.mark.xdist_group("keepermap")


@pytest.fixture(scope="module", autouse=True)
def keeper(zookeeper: ZooKeeper) -> Iterator[ZooKeeper]:
    os.environ[PORT_VARIABLE] = str(zookeeper.port)  # for writers as well
    yield zookeeper
    os.environ.pop(PORT_VARIABLE)
    end_engine()


def fresh_url() -> str:
    """The URL of an empty ledger of its own."""
    url = f"keepermap://embedded/led_{uuid4().hex[:12]}"
    open_ledger(url, create=True, codec=CODEC, connect=connect).close()
    return url


class TestKeeperMapStore(StoreContract):
    @pytest.fixture
    def url(self) -> str:
        return fresh_url()


class _OnKeeper:
    """Makes the library's cases run on the real thing."""

    def create_recorder(self) -> Any:
        return open_ledger(fresh_url(), create=False, codec=CODEC, connect=connect).recorder


class TestLibraryRecorderCases(_OnKeeper, ApplicationRecorderTestCase[ApplicationRecorder]):
    pass


class TestLibraryNonInterleaving(_OnKeeper, NonInterleavingNotificationIDsBaseCase):
    insert_num = 100


# Imported base cases would be collected as tests of their own.
del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase
