"""Attestation: every replica shows the node that was written through our own Keeper client, or nothing is recorded."""

from __future__ import annotations

import time

import pytest

from dpone.adapters.authority.attest import FOLDER
from dpone.adapters.authority.keeper import keeper_hosts
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.identity import platform_stream
from dpone.domain.limits import LEDGER_WAIT_SECONDS
from dpone.domain.platform_events import KeeperAttested
from tests.servers.zookeeper import zookeeper_server

from .conftest import Owner
from .refused import refused


def test_what_was_seen_is_recorded(owner: Owner) -> None:
    owner.provision()
    owner.attest()
    with owner.open() as ledger:
        event = ledger.read(platform_stream(owner.platform_id))[-1].event
    assert isinstance(event, KeeperAttested)
    assert event.seen == {"replica_1": event.czxid, "replica_2": event.czxid}
    assert int(event.czxid) > 0
    assert event.keeper == (owner.keeper,)
    assert owner.platform().attested == {"replica_1", "replica_2"}


def test_the_node_is_gone_afterwards(owner: Owner) -> None:
    owner.provision()
    owner.attest()
    left = owner.cluster.replicas[0].execute(f"SELECT name FROM system.zookeeper WHERE path = '{FOLDER}'")
    assert left == []


def test_another_keeper_is_found_out(owner: Owner) -> None:
    owner.provision()
    before = owner.position()
    with zookeeper_server() as stranger, refused(owner, ErrorCode.NOT_ADMITTED, "2 of 2", "replica_1", "replica_2"):
        owner.attest(stranger.hosts)
    assert owner.position() == before


def test_a_keeper_that_hangs_ends_within_the_bound(owner: Owner) -> None:
    owner.provision()
    with zookeeper_server() as stranger:
        stranger.freeze()
        begun = time.monotonic()
        with refused(owner, ErrorCode.LEDGER_UNREACHABLE):
            owner.attest(stranger.hosts)
        assert time.monotonic() - begun < LEDGER_WAIT_SECONDS + 5


def test_before_provisioning_there_is_nothing_to_attest(owner: Owner) -> None:
    with refused(owner, ErrorCode.NOT_ADMITTED, "platform provision"):
        owner.attest()


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "user:secret@host:1", "a:1,,b:2"])
def test_a_keeper_is_named_by_hosts_and_ports(text: str) -> None:
    with pytest.raises(DponeError) as raised:
        keeper_hosts(text)
    assert raised.value.code is ErrorCode.REQUEST_INVALID
    assert "secret" not in raised.value.what


def test_a_change_of_root_is_not_a_host() -> None:
    assert keeper_hosts("a:1,b:2/chroot") == ("a:1", "b:2")
