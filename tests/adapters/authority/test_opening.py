"""A run opens a cluster only as it was admitted, and says what is different; status says it for people."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpone.adapters.authority.marker import DATABASE, raise_epoch
from dpone.adapters.authority.opening import _strangers, drift, open_cluster
from dpone.adapters.authority.topology import Member
from dpone.adapters.cluster.session import Endpoint
from dpone.domain.errors import ErrorCode

from .conftest import Owner
from .refused import refused


def test_an_admitted_cluster_is_opened_with_its_replicas(owner: Owner) -> None:
    owner.ready()
    opened = owner.opened()
    with opened.ledger:
        assert [endpoint.replica for endpoint in opened.endpoints] == ["replica_1", "replica_2"]
        assert opened.platform_id == owner.platform_id
        assert opened.keeper_root == f"/clickhouse/dpone/{opened.platform_id}"


def test_an_excluded_replica_is_left_out_and_no_drift_even_when_dead(owner: Owner) -> None:
    owner.ready().exclude("replica_2")
    owner.cluster.replicas[1].kill()
    opened = owner.opened()
    opened.ledger.close()
    assert [endpoint.replica for endpoint in opened.endpoints] == ["replica_1"]


def test_a_file_is_no_ledger_for_a_cluster(owner: Owner) -> None:
    settings = replace(owner.settings, ledger_url="sqlite:////tmp/ledger.sqlite")
    with refused(owner, ErrorCode.LEDGER_NOT_SHARED, "one machine"):
        open_cluster(settings, owner.connection, owner.name, owner.database)


def test_each_step_that_was_left_out_is_named(owner: Owner) -> None:
    with refused(owner, ErrorCode.NOT_ADMITTED, "dpone platform provision --connection replay_target"):
        owner.opened()
    owner.provision()
    with refused(owner, ErrorCode.NOT_ADMITTED, "No replica is admitted", "dpone platform attest"):
        owner.opened()


def test_a_database_of_nobody_is_not_provisioned(owner: Owner) -> None:
    owner.ready()
    with refused(
        owner, ErrorCode.NOT_ADMITTED, owner.database, "not for the database elsewhere", "--database elsewhere"
    ):
        open_cluster(owner.settings, owner.connection, owner.name, "elsewhere")


def test_without_a_ledger_its_commands_say_how_to_begin(owner: Owner) -> None:
    for command in (owner.status, owner.revoke, lambda: owner.exclude("replica_2")):
        with refused(owner, ErrorCode.NOT_ADMITTED, "no ledger", "dpone platform provision"):
            command()


def test_another_or_an_absent_ledger_is_refused_and_none_is_created(owner: Owner, other: Owner) -> None:
    owner.ready()
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "does not exist"):
        other.opened()
    other.open(create=True).close()
    with refused(owner, ErrorCode.LEDGER_CORRUPT, "another ledger"):
        other.opened()


def test_a_marker_that_is_gone_is_drift(owner: Owner) -> None:
    owner.ready()
    owner.cluster.replicas[1].execute(f"DROP DATABASE {DATABASE}")
    with refused(owner, ErrorCode.NOT_ADMITTED, "replica_2 bears no marker", "platform status"):
        owner.opened()


@pytest.mark.parametrize("number", [0, 1])
def test_a_replica_that_is_down_is_unreachable(owner: Owner, number: int) -> None:
    owner.ready()
    owner.cluster.replicas[number].kill()
    with refused(owner, ErrorCode.REPLICA_UNREACHABLE):
        owner.opened()


def test_servers_that_came_or_moved_are_drift(owner: Owner) -> None:
    owner.ready()
    platform = owner.platform()
    first, second = (server.port for server in owner.cluster.replicas)
    members = [Member("127.0.0.1", first, 1, 1), Member("127.0.0.1", second, 1, 2)]
    assert _strangers(platform, members) == []
    assert _strangers(platform, members[:1]) == [
        "The cluster no longer has the admitted replica replica_2, or has it elsewhere."
    ]
    assert _strangers(platform, [*members, Member("127.0.0.1", 1, 1, 3)]) == [
        "Server number 3 of the cluster is not admitted."
    ]


def test_a_server_that_calls_itself_something_else_is_drift(owner: Owner) -> None:
    owner.ready()
    platform, marker = owner.platform(), owner.markers()["replica_1"][0]
    assert drift(owner.connection, platform, marker) == ()
    before = replace(platform.admitted["replica_2"], name="before")
    renamed = replace(platform, admitted={"replica_1": platform.admitted["replica_1"], "before": before})
    assert drift(owner.connection, renamed, marker) == (
        "The server admitted as before calls itself something else now.",
    )


def test_a_server_that_nobody_admitted_is_drift(owner: Owner) -> None:
    owner.ready()
    platform, marker = owner.platform(), owner.markers()["replica_1"][0]
    alone = replace(platform, admitted={"replica_1": platform.admitted["replica_1"]})
    assert drift(owner.connection, alone, marker) == ("Server number 2 of the cluster is not admitted.",)


def test_status_is_one_row_a_replica_and_shows_no_place(owner: Owner) -> None:
    owner.ready().exclude("replica_2")
    owner.cluster.replicas[1].kill()
    shown = owner.status()
    rows = {item["replica"]: item for item in shown["items"]}  # type: ignore[attr-defined]
    assert (rows["replica_1"]["state"], rows["replica_1"]["keeper"], rows["replica_1"]["marker"]) == (
        "admitted",
        "answers",
        "agrees",
    )
    assert (rows["replica_2"]["state"], rows["replica_2"]["reachable"]) == ("excluded", False)
    assert (shown["agrees"], shown["next"]) == (True, None)
    text = json.dumps(shown)
    assert not [server for server in owner.cluster.replicas if str(server.port) in text]


def test_status_names_what_does_not_agree(owner: Owner) -> None:
    owner.ready()
    owner.cluster.replicas[0].execute(f"DROP DATABASE {DATABASE}")
    owner.cluster.replicas[1].kill()
    shown = owner.status()
    assert str(shown["next"]).startswith("Bring a server back")
    assert shown["differences"] == [
        "Replica replica_1: its marker is missing.",
        "Replica replica_2: it does not answer (DPONE_PUBLICATION_REPLICA_UNREACHABLE).",
    ]


def test_status_says_what_to_type_for_what_is_different(owner: Owner) -> None:
    owner.ready()
    with owner.open() as ledger:
        ledger_id = ledger.ledger_id
    endpoints = [Endpoint(replica.name, "127.0.0.1", replica.port) for replica in owner.cluster.replicas]
    raise_epoch(owner.connection, endpoints[1:], ledger_id, 2, "2026-01-02T03:04:05Z")
    assert "--ledger names" in str(owner.status()["next"])
    owner.cluster.replicas[1].kill()
    assert "dpone platform exclude replica_2 --connection" in str(owner.status()["next"])
    owner.cluster.replicas[0].kill()
    assert str(owner.status()["next"]).startswith("Bring a server back")
