"""Admission: what the cluster is, seen by a person, recorded; a replica that comes holds what the others hold."""

from __future__ import annotations

import pytest

from dpone.adapters.authority.marker import DATABASE
from dpone.domain.errors import AppendConflict, ErrorCode
from dpone.domain.names import arm_name, candidate_name

from .conftest import Owner
from .refused import refused


class TestTheInventory:
    def test_hosts_names_versions_and_macros_are_recorded(self, owner: Owner) -> None:
        owner.ready()
        for replica, server in zip(owner.platform().replicas, owner.cluster.replicas, strict=True):
            assert (replica.name, replica.port, replica.version) == (server.name, server.port, "18.16.1")
            assert replica.macros == {"cluster": "replay_cluster", "replica": server.name, "shard": "01"}
        (plan,) = owner.plans
        assert (plan.new, plan.internal_replication) == (("replica_1", "replica_2"), "proven")

    def test_a_second_time_nothing_changes_and_nobody_is_asked(self, owner: Owner) -> None:
        owner.ready()
        before = owner.position()
        assert owner.admit().changes == ()
        assert (owner.position(), len(owner.plans)) == (before, 1)

    def test_no_is_no(self, owner: Owner) -> None:
        owner.provision()
        owner.attest()
        owner.answer = False
        before = owner.position()
        with refused(owner, ErrorCode.NOT_ADMITTED, "Nobody said yes"):
            owner.admit()
        assert owner.position() == before

    def test_the_order_is_provision_attest_admit(self, owner: Owner) -> None:
        with refused(owner, ErrorCode.NOT_ADMITTED, "platform provision"):
            owner.admit()
        owner.provision()
        with refused(owner, ErrorCode.NOT_ADMITTED, "platform attest", "replica_1, replica_2"):
            owner.admit()

    def test_a_cluster_that_writes_to_every_replica_is_refused(self, owner: Owner) -> None:
        owner.name = "external_replication"
        owner.provision()
        owner.attest()
        with refused(owner, ErrorCode.EVIDENCE_UNSUPPORTED, "internal_replication"):
            owner.admit()
        assert owner.plans == []

    def test_proving_how_it_replicates_leaves_nothing_behind(self, owner: Owner) -> None:
        owner.ready()
        for replica in owner.cluster.replicas:
            tables = replica.execute(f"SELECT name FROM system.tables WHERE database = '{DATABASE}'")
            assert tables == [("platform",)]

    def test_an_admitted_replica_without_its_marker_is_found_out(self, owner: Owner) -> None:
        owner.ready()
        owner.cluster.replicas[1].execute(f"DROP DATABASE {DATABASE}")
        with refused(owner, ErrorCode.NOT_ADMITTED, "replica_2 bears no marker"):
            owner.admit()


class TestAReplicaThatComes:
    """One that was excluded stands for a new one: it comes back only by being prepared."""

    def test_one_that_kept_the_live_table_comes_back_as_it_is(self, owner: Owner) -> None:
        owner.ready().publish()
        owner.exclude("replica_2")
        assert list(owner.slot().live.identities) == ["replica_1"]  # type: ignore[union-attr]
        owner.admit()
        slot = owner.slot()
        assert slot.inventory == ("replica_1", "replica_2")
        assert dict(slot.live.identities) == {name: found["t"] for name, found in owner.tables().items()}  # type: ignore[union-attr]

    def test_one_that_is_empty_gets_marker_database_and_every_live_table(self, owner: Owner) -> None:
        owner.ready().publish(rows=5)
        owner.exclude("replica_2")
        server = owner.cluster.replicas[1]
        server.execute(f"DROP DATABASE {owner.database}")
        server.execute(f"DROP DATABASE {DATABASE}")
        changes = owner.admit().changes
        assert any("created on replica replica_2" in change for change in changes)
        assert server.execute(f"SELECT count() FROM {owner.database}.t") == [(5,)]
        assert owner.markers()["replica_1"] == owner.markers()["replica_2"]

    def test_one_that_missed_a_publication_gets_the_new_generation_and_keeps_the_old_one_aside(
        self, owner: Owner
    ) -> None:
        owner.ready().publish(rows=2)
        old = owner.tables()["replica_2"]["t"]
        owner.publish(rows=4, run="tuesday")
        server = owner.cluster.replicas[1]
        (before,) = [name for name, identity in owner.tables()["replica_2"].items() if identity == old]
        live, owner_name = owner.tables()["replica_2"]["t"], owner.database
        candidate = candidate_name("t", live.id.rpartition("/")[2], 1, 1)
        server.execute(
            f"RENAME TABLE {owner_name}.t TO {owner_name}.{candidate}, {owner_name}.{before} TO {owner_name}.t"
        )
        owner.exclude("replica_2")
        owner.admit()
        tables = owner.tables()["replica_2"]
        assert tables["t"] == live
        assert old in tables.values()
        assert not [name for name in tables if name.endswith("c1_1")]
        assert server.execute(f"SELECT count() FROM {owner_name}.t") == [(4,)]

    def test_names_that_a_late_statement_could_use_are_moved_aside(self, owner: Owner) -> None:
        owner.ready().publish()
        owner.exclude("replica_2")
        generation, candidate = owner.candidate(rows=1)
        arm = arm_name("t", generation, 1, 1)
        owner.cluster.replicas[1].execute(f"RENAME TABLE {owner.database}.{candidate} TO {owner.database}.{arm}")
        owner.admit()
        names = [name for name in owner.tables()["replica_2"] if name != "t"]
        assert names == [f"{arm}_retired_0"]

    def test_somebody_elses_table_stops_it(self, owner: Owner) -> None:
        owner.ready().publish()
        owner.exclude("replica_2")
        server = owner.cluster.replicas[1]
        server.execute(f"DROP TABLE {owner.database}.t")
        server.execute(f"CREATE TABLE {owner.database}.t (a Int64) ENGINE = MergeTree ORDER BY a")
        with refused(owner, ErrorCode.NOT_ADMITTED, "replica_2", "did not make"):
            owner.admit()
        assert owner.platform().inventory == ("replica_1",)
        assert server.execute(f"SELECT count() FROM {owner.database}.t") == [(0,)]

    def test_none_comes_while_a_target_is_held(self, owner: Owner) -> None:
        owner.ready().publish(hold=True)
        owner.exclude("replica_2")
        with refused(owner, ErrorCode.TARGET_BLOCKED, "run monday"):
            owner.admit()
        owner.append(owner.vacated("monday", owner.slot().live.generation))  # type: ignore[union-attr]
        owner.admit()
        assert owner.platform().inventory == ("replica_1", "replica_2")

    def test_a_claim_while_it_is_looked_at_makes_the_admission_fail(self, owner: Owner) -> None:
        owner.ready().publish()
        owner.exclude("replica_2")

        class Meanwhile(Owner):
            def _confirm(self, plan: object) -> bool:
                owner.claim("tuesday")
                return True

        meanwhile = Meanwhile(owner.cluster, owner.ledger_url, owner.database)
        with pytest.raises(AppendConflict):
            meanwhile.admit()
        assert owner.platform().inventory == ("replica_1",)


def test_revoking_empties_the_inventory_until_it_is_admitted_again(owner: Owner) -> None:
    owner.ready().publish()
    owner.revoke()
    assert owner.platform().inventory == ()
    before = owner.position()
    assert owner.revoke().changes == ()
    assert owner.position() == before
    with refused(owner, ErrorCode.NOT_ADMITTED, "No replica is admitted"):
        owner.opened()
    owner.admit()
    assert owner.platform().inventory == ("replica_1", "replica_2")
    owner.claim("tuesday")
    with refused(owner, ErrorCode.TARGET_BLOCKED, "tuesday"):
        owner.revoke()


class TestExclusion:
    def test_a_dead_replica_is_excluded_without_being_asked(self, owner: Owner) -> None:
        owner.ready().publish(hold=True)
        owner.cluster.replicas[0].kill()
        owner.exclude("replica_1")
        owner.cluster.replicas[0].start()
        assert owner.platform().inventory == ("replica_2",)
        slot = owner.slot()
        assert slot.live is not None
        assert (list(slot.live.identities), slot.inventory) == (["replica_2"], ("replica_2",))
        assert slot.holder is not None

    def test_a_second_time_nothing_changes(self, owner: Owner) -> None:
        owner.ready().exclude("replica_1")
        before = owner.position()
        assert owner.exclude("replica_1").changes == ()
        assert owner.position() == before

    def test_the_last_one_stays_and_a_stranger_is_named(self, owner: Owner) -> None:
        owner.ready().exclude("replica_1")
        with refused(owner, ErrorCode.NOT_ADMITTED, "last one", "platform revoke"):
            owner.exclude("replica_2")
        with refused(owner, ErrorCode.NOT_ADMITTED, "replica_9", "replica_2"):
            owner.exclude("replica_9")
