"""Ledgers on a real ZooKeeper, for the tests of the keeper store."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from kazoo.client import KazooClient
from scripts.cluster_servers.zookeeper import is_installed

from dpone.ledger.keeper import KeeperRecorder, open_store
from dpone.ledger.keeper_layout import Layout
from dpone.ledger.keeper_url import KeeperAddress, KeeperUser, parse_address
from tests.servers.required import require
from tests.servers.zookeeper import ZooKeeper, zookeeper_server

MOVED = struct.pack(">i", -103)
"""What a refused change says: the node has another version."""
_TRANSACTION = 14  # the number of a multi request in the protocol
_SECONDS = 15.0
_numbers = count(1)


def is_transaction(sent: bytes) -> bool:
    """Whether a multi is among the frames that a client sent at once: length, request number, kind."""
    while len(sent) >= 12:
        length, _, kind = struct.unpack(">iii", sent[:12])
        if kind == _TRANSACTION:
            return True
        if length < 8:
            return False
        sent = sent[4 + length :]
    return False


def wait_until(condition: Callable[[], bool], seconds: float = _SECONDS) -> None:
    """Poll a callable until it is true."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)


@pytest.fixture
def own_zookeeper() -> Iterator[ZooKeeper]:
    """A server that this test may stop, freeze and kill."""
    require(is_installed(), "ZooKeeper")
    with zookeeper_server() as server:
        yield server


@pytest.fixture
def raw(zookeeper: ZooKeeper) -> Iterator[Any]:
    """The shared server by hand."""
    with_client = KazooClient(zookeeper.hosts)
    with_client.start()
    yield with_client
    with_client.stop()
    with_client.close()


def fresh_root() -> str:
    return f"/tests/ledger-{next(_numbers)}"


def address_on(keeper: ZooKeeper, root: str | None = None) -> KeeperAddress:
    return parse_address(f"{keeper.hosts}{root or fresh_root()}")


def url_of(address: KeeperAddress) -> str:
    return f"keeper://{address.hosts}{address.root}"


def made(address: KeeperAddress, user: KeeperUser | None = None, seconds: float = 10.0) -> KeeperRecorder:
    """A new ledger, open."""
    return open_store(address, user, create=True, wait_seconds=seconds)


def layout_of(address: KeeperAddress) -> Layout:
    return Layout(address.root)


def freeze(zookeeper: ZooKeeper) -> None:
    """Let a server stand still, and wait until it does: the signal alone may take a moment."""
    zookeeper.freeze()
    assert zookeeper.process is not None
    threads = Path(f"/proc/{zookeeper.process.pid}/task")
    wait_until(lambda: all(_state(thread) == "T" for thread in threads.iterdir()))


def _state(thread: Path) -> str:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
