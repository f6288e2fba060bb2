"""Adoption: the target is what all replicas show, by a person's word; only while nobody holds it."""

from __future__ import annotations

import pytest

from dpone.domain.errors import ErrorCode

from .conftest import Owner
from .refused import refused


def by_hand(owner: Owner, path: str = "", extra: str = "") -> None:
    """Somebody's own replicated table, with two rows."""
    path = path or f"/somebody/{owner.database}"
    for replica in owner.cluster.replicas:
        replica.execute(
            f"CREATE TABLE {owner.database}.t (a Int64, b String) "
            f"ENGINE = ReplicatedMergeTree('{path}', '{{replica}}') {extra} ORDER BY a"
        )
    owner.cluster.replicas[0].execute(f"INSERT INTO {owner.database}.t VALUES", [(1, "x"), (2, "y")])


def test_somebodys_table_is_live_from_now_on(owner: Owner) -> None:
    owner.ready()
    by_hand(owner)
    owner.adopt()
    live = owner.slot().live
    assert live is not None
    assert (live.adopted, live.rows, live.definition.order_by) == (True, 2, ("a",))
    assert dict(live.identities) == {name: tables["t"] for name, tables in owner.tables().items()}
    assert [column.name for column in live.definition.columns] == ["a", "b"]


def test_a_second_time_nothing_changes(owner: Owner) -> None:
    owner.ready()
    by_hand(owner)
    owner.adopt()
    before = owner.position()
    assert owner.adopt().changes == ()
    assert owner.position() == before


def test_a_published_table_that_was_altered_is_taken_over(owner: Owner) -> None:
    generation = owner.ready().publish()
    owner.cluster.replicas[0].execute(f"ALTER TABLE {owner.database}.t ADD COLUMN c UInt8")
    for replica in owner.cluster.replicas:
        replica.execute(f"SELECT c FROM {owner.database}.t")
    owner.adopt()
    live = owner.slot().live
    assert live is not None
    assert live.adopted
    assert live.generation != generation
    assert [column.name for column in live.definition.columns] == ["a", "b", "c"]


def test_a_table_that_is_gone_everywhere_is_adopted_as_absence(owner: Owner) -> None:
    owner.ready().publish()
    for replica in owner.cluster.replicas:
        replica.execute(f"DROP TABLE {owner.database}.t")
    owner.adopt()
    assert owner.slot().live is None


def test_nothing_where_nothing_was_is_no_change(owner: Owner) -> None:
    owner.ready()
    assert owner.adopt("never").changes == ()


def test_an_adopted_table_goes_with_a_new_replica(owner: Owner) -> None:
    owner.ready()
    by_hand(owner, extra="PARTITION BY a")
    owner.adopt()
    owner.exclude("replica_2")
    server = owner.cluster.replicas[1]
    server.execute(f"DROP TABLE {owner.database}.t")
    owner.admit()
    assert server.execute(f"SELECT count() FROM {owner.database}.t") == [(2,)]


def test_replicas_that_differ_are_nothing_to_adopt(owner: Owner) -> None:
    owner.ready().publish()
    owner.cluster.replicas[1].execute(f"DROP TABLE {owner.database}.t")
    with refused(owner, ErrorCode.NOT_ADMITTED, "do not all show the same"):
        owner.adopt()


def test_a_table_that_does_not_replicate_is_no_target(owner: Owner) -> None:
    owner.ready()
    for replica in owner.cluster.replicas:
        replica.execute(f"CREATE TABLE {owner.database}.t (a Int64) ENGINE = MergeTree ORDER BY a")
    with refused(owner, ErrorCode.EVIDENCE_UNSUPPORTED, "not a replicated table"):
        owner.adopt()


def test_a_view_is_no_absence(owner: Owner) -> None:
    owner.ready()
    for replica in owner.cluster.replicas:
        replica.execute(f"CREATE VIEW {owner.database}.t AS SELECT 1 AS a")
    with refused(owner, ErrorCode.EVIDENCE_UNSUPPORTED):
        owner.adopt()


def test_a_held_target_is_not_adopted(owner: Owner) -> None:
    owner.ready().publish(hold=True)
    with refused(owner, ErrorCode.TARGET_BLOCKED, "run monday", "dpone ops explain"):
        owner.adopt()


def test_a_replica_that_is_down_could_show_anything(owner: Owner) -> None:
    owner.ready().publish()
    owner.cluster.replicas[1].kill()
    with refused(owner, ErrorCode.REPLICA_UNREACHABLE, "replica_2"):
        owner.adopt()


@pytest.mark.parametrize("name", ["t", ".t", "database."])
def test_a_table_is_named_with_its_database(owner: Owner, name: str) -> None:
    from dpone.adapters.authority.adopt import Review, adopt

    with refused(owner, ErrorCode.REQUEST_INVALID, "DATABASE.TABLE"):
        adopt(owner.asked, owner.open, name, Review("Ada", "why"))
