"""Who may do what with a ledger in Keeper, on a real ZooKeeper."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from dpone.domain.errors import ErrorCode
from dpone.ledger.keeper import KeeperRecorder, open_store
from dpone.ledger.keeper_url import KeeperAddress, KeeperUser
from dpone.ledger.store import open_ledger
from tests.servers.zookeeper import ZooKeeper

from .events import CODEC, some
from .keeper_nodes import SECRET, address, events, fails, layout, ledger, raw, recorder, tree
from .keeper_server import made, url_of

__all__ = ["address", "layout", "ledger", "raw", "recorder"]


def test_only_the_user_that_made_a_ledger_may_touch_it(address: KeeperAddress, raw: Any, zookeeper: ZooKeeper) -> None:
    owner = KeeperUser("dpone", SECRET)
    with closing(made(address, owner)) as recorder:
        stream = uuid4()
        for version in range(1, 70):
            recorder.insert_events(events(stream, version, 1))
        assert recorder.self_check() == []
    for user in (None, KeeperUser("dpone", "wrong"), KeeperUser("other", SECRET)):
        for create in (False, True):
            error = fails(lambda user=user, create=create: open_store(address, user, create=create), "does not allow")  # type: ignore[misc]
            assert error.code is ErrorCode.LEDGER_UNREACHABLE
            assert "DPONE_KEEPER_AUTH" in str(error.next)
    assert raw.get(address.root)[0] == b""  # a server that lists what lies beside the root must be let
    for child in raw.get_children(address.root):
        with pytest.raises(NoAuthError):
            raw.get(f"{address.root}/{child}")
        with pytest.raises(NoAuthError):
            raw.get_children(f"{address.root}/{child}")
    with pytest.raises(NoAuthError):
        raw.create(f"{address.root}/more", b"")
    authorised = KazooClient(zookeeper.hosts, auth_data=[("digest", f"dpone:{SECRET}")])
    authorised.start()
    acls = {
        entry
        for path in tree(authorised, address.root)
        for entry in authorised.get_acls(path)[0]
        if path != address.root
    }
    authorised.stop()
    authorised.close()
    assert {(acl.id.scheme, acl.id.id.partition(":")[0]) for acl in acls} == {("digest", "dpone")}


def test_credentials_reach_the_store_by_the_environment(
    address: KeeperAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPONE_KEEPER_AUTH", f"dpone:{SECRET}")
    with open_ledger(url_of(address), create=True, codec=CODEC) as ledger:
        ledger.append([some()])
    monkeypatch.delenv("DPONE_KEEPER_AUTH")
    fails(lambda: open_ledger(url_of(address), create=False, codec=CODEC), "does not allow")


def test_a_ledger_that_was_open_to_all_is_a_finding_for_its_user(
    recorder: KeeperRecorder, address: KeeperAddress
) -> None:
    with closing(open_store(address, KeeperUser("dpone", SECRET))) as ours:
        assert any("rights of the node identity" in found for found in ours.self_check())


def test_a_user_of_a_ledger_that_is_open_to_all_locks_nobody_out(
    recorder: KeeperRecorder, address: KeeperAddress, raw: Any
) -> None:
    stream = uuid4()
    with closing(open_store(address, KeeperUser("dpone", SECRET))) as theirs:
        for version in range(1, 70):  # entries, a stream and a page of it
            theirs.insert_events(events(stream, version, 1))
    recorder.insert_events(events(stream, 70, 1))
    assert len(recorder.select_events(stream)) == 70
    schemes = {entry.id.scheme for path in tree(raw, address.root) for entry in raw.get_acls(path)[0]}
    assert schemes == {"world"}
