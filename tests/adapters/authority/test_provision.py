"""Provisioning: markers on every replica, one ledger behind them, and nobody else's databases."""

from __future__ import annotations

import threading

import pytest

from dpone.adapters.authority.marker import DATABASE, raise_epoch
from dpone.adapters.authority.provision import provision
from dpone.adapters.cluster.session import Endpoint
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.identity import platform_stream
from dpone.domain.platform import CLUSTER
from dpone.ledger.store import EventLedger

from .conftest import AT, Owner
from .refused import refused


def test_the_marker_stands_on_every_replica_and_the_ledger_knows_the_platform(owner: Owner) -> None:
    answer = owner.provision()
    assert len(answer.changes) == 3
    with owner.open() as ledger:
        expected = (ledger.ledger_id, ledger.epoch, (owner.database,))
    for markers in owner.markers().values():
        (marker,) = markers
        assert (marker.ledger_id, marker.epoch, marker.databases) == expected
    platform = owner.platform()
    assert (platform.kind, platform.cluster, platform.databases) == (CLUSTER, "replay_cluster", (owner.database,))
    assert platform.inventory == ()


def test_a_platform_that_was_revoked_gives_its_databases_back(owner: Owner) -> None:
    owner.name = "external_replication"
    owner.provision()
    owner.name = "replay_cluster"
    with refused(owner, ErrorCode.NOT_ADMITTED, "taken already", "platform revoke", "--cluster external_replication"):
        owner.provision()
    owner.name = "external_replication"
    owner.revoke()
    owner.name = "replay_cluster"
    owner.ready()
    owner.opened().ledger.close()


def test_a_second_time_nothing_changes(owner: Owner) -> None:
    owner.provision()
    before = owner.position()
    assert owner.provision().changes == ()
    assert provision(owner.asked, owner.open, ()).changes == ()
    assert owner.position() == before


def test_a_lost_replica_gets_its_marker_back(owner: Owner) -> None:
    owner.provision()
    owner.cluster.replicas[1].execute(f"DROP DATABASE {DATABASE}")
    assert owner.provision().changes == ("The marker was written to replica replica_2 and read back.",)
    assert len(set(owner.markers().values())) == 1


def test_cut_between_markers_and_event_it_goes_on_with_the_same_platform(owner: Owner) -> None:
    def cut(create: bool) -> EventLedger:
        ledger = owner.open(create)

        def append(*_: object) -> None:
            raise KeyboardInterrupt

        ledger.append = append  # type: ignore[method-assign, assignment]
        return ledger

    with pytest.raises(KeyboardInterrupt):
        provision(owner.asked, cut, (owner.database,))
    platform_id = owner.platform_id
    with owner.open() as ledger:
        assert not ledger.read(platform_stream(platform_id))
    assert owner.provision().changes == ("The platform and its databases are recorded in the ledger.",)
    assert owner.platform_id == platform_id


def test_two_who_provision_at_once_mint_one_platform(owner: Owner) -> None:
    owner.open(create=True).close()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            owner.provision()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert {len(markers) for markers in owner.markers().values()} == {1}
    assert owner.platform().version == 1


def test_another_ledger_gets_no_database_that_is_taken(owner: Owner, other: Owner) -> None:
    owner.provision()
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "does not exist"):
        other.provision()
    other.open(create=True).close()
    with refused(owner, ErrorCode.NOT_ADMITTED, "another ledger", owner.database):
        other.provision()
    with refused(owner, ErrorCode.NOT_ADMITTED, "another ledger"):
        provision(other.asked, other.open, ())
    assert len(owner.markers()["replica_1"]) == 1


def test_another_ledger_may_have_other_databases(owner: Owner, other: Owner) -> None:
    owner.provision()
    other.provision("elsewhere")
    assert [len(markers) for markers in owner.markers().values()] == [2, 2]
    with refused(owner, ErrorCode.NOT_ADMITTED, "another ledger", "elsewhere"):
        owner.provision("elsewhere")


def test_databases_are_added(owner: Owner) -> None:
    owner.provision()
    platform_id = owner.platform_id
    owner.provision("more")
    assert owner.platform().databases == tuple(sorted(("more", owner.database)))
    assert {marker.platform_id for markers in owner.markers().values() for marker in markers} == {platform_id}
    assert owner.provision().changes == ()


def test_a_lost_ledger_cannot_start_afresh(owner: Owner) -> None:
    owner.provision()
    lost = Owner(owner.cluster, f"{owner.ledger_url}_lost", owner.database)
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "does not exist"):
        lost.provision()
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "does not exist"):
        lost.attest()
    with pytest.raises(DponeError):
        lost.open()


def test_an_emptied_cluster_is_provisioned_anew_only_after_it_was_revoked(owner: Owner) -> None:
    owner.provision()
    first = owner.platform_id
    for replica in owner.cluster.replicas:
        replica.execute(f"DROP DATABASE {DATABASE}")
    with refused(owner, ErrorCode.NOT_ADMITTED, "bears the marker", "platform revoke"):
        owner.provision()
    owner.revoke()
    owner.provision()
    assert owner.platform_id != first


def test_an_epoch_that_rose_only_in_the_markers_is_another_ledger(owner: Owner) -> None:
    owner.ready()
    with owner.open() as ledger:
        ledger_id = ledger.ledger_id
    endpoints = [Endpoint(replica.name, "127.0.0.1", replica.port) for replica in owner.cluster.replicas]
    assert raise_epoch(owner.connection, endpoints, ledger_id, 2, AT) == 2
    assert raise_epoch(owner.connection, endpoints, ledger_id, 2, AT) == 0
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "epoch"):
        owner.provision()
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "epoch"):
        owner.opened()
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "later epoch"):
        raise_epoch(owner.connection, endpoints, ledger_id, 1, AT)


@pytest.mark.parametrize(
    ("cluster", "code", "word"),
    [
        ("two_shards", ErrorCode.EVIDENCE_UNSUPPORTED, "2 shards"),
        ("nowhere", ErrorCode.REQUEST_INVALID, "replay_cluster"),
    ],
)
def test_a_cluster_that_cannot_hold_targets(owner: Owner, cluster: str, code: ErrorCode, word: str) -> None:
    owner.name = cluster
    with refused(owner, code, word):
        owner.provision()
    assert owner.markers() == {"replica_1": (), "replica_2": ()}


@pytest.mark.parametrize("name", ["system", DATABASE, ""])
def test_a_database_that_is_nobodys(owner: Owner, name: str) -> None:
    with refused(owner, ErrorCode.REQUEST_INVALID, repr(name)):
        provision(owner.asked, owner.open, (name,))


def test_a_server_that_is_down_is_named_by_its_number(owner: Owner) -> None:
    owner.cluster.replicas[1].kill()
    with refused(owner, ErrorCode.REPLICA_UNREACHABLE, "number 2 of the cluster"):
        owner.provision()
