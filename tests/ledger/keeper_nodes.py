"""A ledger in Keeper of the test's own, and its nodes as an administrator sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent
from kazoo.security import OPEN_ACL_UNSAFE

from dpone.domain.errors import LedgerFailed
from dpone.ledger.keeper import KeeperRecorder
from dpone.ledger.keeper_layout import Layout
from dpone.ledger.keeper_url import KeeperAddress
from dpone.ledger.store import EventLedger
from tests.servers.zookeeper import ZooKeeper

from .events import CODEC
from .keeper_server import address_on, made, raw

__all__ = ["address", "layout", "ledger", "raw", "recorder"]

SECRET = "s3cr3t-c4n4ry-zk"


@pytest.fixture
def address(zookeeper: ZooKeeper) -> KeeperAddress:
    return address_on(zookeeper)


@pytest.fixture
def layout(address: KeeperAddress) -> Layout:
    return Layout(address.root)


@pytest.fixture
def recorder(address: KeeperAddress) -> Iterator[KeeperRecorder]:
    with closing(made(address)) as recorder:
        yield recorder


@pytest.fixture
def ledger(recorder: KeeperRecorder) -> EventLedger:
    return EventLedger(recorder, CODEC, recorder.identity())


def events(stream: UUID, first: int, count: int, state: bytes = b"{}") -> list[StoredEvent]:
    return [StoredEvent(stream, version, "Noted", state) for version in range(first, first + count)]


def tree(raw: Any, path: str) -> dict[str, Any]:
    """Every node below a path, with its data and when it was changed."""
    data, stat = raw.get(path)
    found = {path: (data, stat.mzxid, stat.aversion)}
    for child in raw.get_children(path):
        found |= tree(raw, f"{path}/{child}")
    return found


def opened_up(raw: Any, path: str) -> None:
    """What an administrator can do: take a node's protection away."""
    raw.set_acls(path, OPEN_ACL_UNSAFE)


def fails(use: Callable[[], Any], why: str) -> LedgerFailed:
    with pytest.raises(LedgerFailed, match=why) as caught:
        use()
    said = f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    assert caught.value.next
    assert "127.0.0.1" not in said
    assert SECRET not in said
    return caught.value
