"""Ledgers on a real ZooKeeper, for the tests of the keeper store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from scripts.cluster_servers.zookeeper import is_installed

from dpone.ledger.keeper import KeeperRecorder, open_store
from dpone.ledger.keeper_layout import Layout
from dpone.ledger.keeper_url import KeeperAddress, KeeperUser, parse_address
from tests.servers.required import require
from tests.servers.zookeeper import ZooKeeper, zookeeper_server

from .keeper_relay import wait_until

_numbers = count(1)


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
