"""Creating, seeing, renaming and dropping by identity, on every replica."""

from __future__ import annotations

import pytest

from dpone.adapters.clickhouse import definition_digest
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.adapters.cluster.session import Endpoint
from dpone.adapters.connections import Connection
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.names import candidate_name
from dpone.domain.tables import Column, TableDefinition, TableIdentity, TargetRef
from tests.servers.cluster import PASSWORDS

from .conftest import COLUMNS, DEFINITION, QUICK, Target, platform_on

ODD = "we`ird\\ 'na\"me\n; DROP TABLE x --"
GENERATION = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "definition",
    [
        DEFINITION,
        TableDefinition((*COLUMNS, Column("c", "Date")), "ReplicatedReplacingMergeTree", ("c", "a"), "toYYYYMM(c)"),
        TableDefinition((Column("x", "String"), Column("y", "Decimal(38,4)")), "ReplicatedMergeTree", ("x",), "x"),
        TableDefinition((Column("a b", "DateTime( 'UTC' )"), Column("é", "UUID")), "ReplicatedMergeTree", ("a b",)),
    ],
)
def test_what_was_created_is_the_same_on_every_replica_and_as_defined(
    target: Target, definition: TableDefinition
) -> None:
    candidate = target.candidate(definition)
    first, second = (tables[candidate] for tables in target.tables())
    assert first == second
    assert first.digest == definition_digest(definition.columns, definition.order_by, definition.engine)


def test_names_of_any_characters_are_names_only(target: Target) -> None:
    target.table = ODD[:10]
    candidate = target.candidate(TableDefinition((Column("a", "Int8"),), "ReplicatedMergeTree", ("a",)))
    assert [list(tables) for tables in target.tables()] == [[candidate]] * 2
    target.platform.rename("replica_2", target.database, candidate, target.table)
    assert list(target.tables()[1]) == [target.table]


def test_create_refuses_a_name_that_exists_and_leaves_it(target: Target) -> None:
    candidate = target.candidate()
    before = target.tables()
    with pytest.raises(EngineFailed) as caught:
        target.platform.create(
            target.database, candidate, TableDefinition((Column("z", "Int8"),), DEFINITION.engine, ("z",))
        )
    assert caught.value.engine_code == 57
    assert target.tables() == before


def test_create_wants_a_name_that_carries_its_generation(target: Target) -> None:
    with pytest.raises(ValueError, match="generation"):
        target.platform.create(target.database, "t", DEFINITION)


def test_two_platforms_never_share_a_keeper_path(target: Target) -> None:
    name = candidate_name("t", GENERATION, 1, 1)
    target.platform.create(target.database, name, DEFINITION)
    other = platform_on(target.cluster)
    elsewhere = candidate_name("u", GENERATION, 1, 1)
    other.create(target.database, elsewhere, DEFINITION)
    theirs = other.look(TargetRef("", target.database, "u"))[0].tables[elsewhere]
    assert theirs.id != target.tables()[0][name].id


def test_look_takes_the_targets_own_names_only(target: Target) -> None:
    ours = ["t", f"__dpone_t_{GENERATION}_pred", f"__dpone_t_{GENERATION}_c1_7"]
    others = ["t_b", f"__dpone_t_b_{GENERATION}_c1_1", "__dpone_t_mine", f"__dpone_t_{GENERATION}x"]
    for name in [*ours, *others]:
        target.cluster.execute(f"CREATE TABLE {target.database}.{name} (a Int8) ENGINE = Memory")
    assert [sorted(tables) for tables in target.tables()] == [sorted(ours), []]
    assert target.tables()[0]["t"].id == "local:Memory"


def test_look_at_a_database_that_is_not_there_shows_nothing(target: Target) -> None:
    looks = target.platform.look(TargetRef("", "no such database", "t"))
    assert [(look.reachable, dict(look.tables)) for look in looks] == [(True, {})] * 2


def test_an_alter_keeps_the_path_and_changes_the_digest(target: Target) -> None:
    before = target.publish_first()
    target.cluster.execute(f"ALTER TABLE {target.database}.t ADD COLUMN c Int8")
    after = target.tables()[0]["t"]
    assert after.id == before.id
    assert after.digest != before.digest


def test_rename_is_for_one_replica_and_never_onto_a_table(target: Target) -> None:
    candidate, other = target.candidate(), target.candidate()
    target.platform.rename("replica_2", target.database, candidate, "t")
    with pytest.raises(EngineFailed) as caught:
        target.platform.rename("replica_2", target.database, other, "t")
    assert caught.value.engine_code == 57
    assert [sorted(tables) for tables in target.tables()] == [sorted([candidate, other]), sorted(["t", other])]


def test_drop_is_by_identity_only(target: Target) -> None:
    candidate, other = target.candidate(), target.candidate()
    identity, another = target.tables()[0][candidate], target.tables()[0][other]
    drop, database = target.platform.drop, target.database
    assert drop("replica_1", database, candidate, another) is False
    assert drop("replica_1", database, "absent", identity) is False
    assert candidate in target.tables()[0]
    assert drop("replica_1", database, candidate, identity) is True
    assert [candidate in tables for tables in target.tables()] == [False, True]
    assert drop("replica_1", database, candidate, identity) is False


def test_a_table_without_a_keeper_path_is_never_dropped(target: Target) -> None:
    target.cluster.execute(f"CREATE TABLE {target.database}.t (a Int8) ENGINE = Memory")
    identity = target.tables()[0]["t"]
    assert target.platform.drop("replica_1", target.database, "t", identity) is False
    assert "t" in target.tables()[0]


def test_after_the_last_drop_nothing_is_left_in_the_keeper(target: Target) -> None:
    candidate = target.candidate()
    identity = target.tables()[0][candidate]
    for replica in target.platform.replicas:
        assert target.platform.drop(replica, target.database, candidate, identity)
    parent, leaf = identity.id.rsplit("/", 1)
    names = target.cluster.execute(f"SELECT name FROM system.zookeeper WHERE path = '{parent}'")
    assert (leaf,) not in names


def test_a_replica_that_lacks_the_candidate_is_found_out(target: Target) -> None:
    """Its database is missing: the statement of the cluster fails there and runs on the other one."""
    target.cluster.replicas[1].execute(f"DROP DATABASE {target.database}")
    with pytest.raises(EngineFailed) as caught:
        target.candidate()
    assert caught.value.engine_code == 81
    assert [len(tables) for tables in target.tables()] == [1, 0]


def test_servers_that_changed_places_are_found_out(target: Target) -> None:
    """The table is there, at its Keeper path, and the server is not the replica that it was admitted as."""
    connection = Connection("replay_target", "127.0.0.1", username="dpone", password=PASSWORDS.dpone)
    first, second = target.cluster.replicas
    endpoints = [Endpoint("replica_1", "127.0.0.1", second.port), Endpoint("replica_2", "127.0.0.1", first.port)]
    target.platform = ReplicatedPlatform(connection, endpoints, target.cluster.name, "mixed_up", QUICK)
    with pytest.raises(EngineFailed) as caught:
        target.candidate()
    assert caught.value.code is ErrorCode.PUBLICATION_UNKNOWN
    assert "replica_1 does not have it" in caught.value.what


def test_an_identity_is_the_same_before_and_after_a_rename(target: Target) -> None:
    candidate = target.candidate()
    before: TableIdentity = target.tables()[0][candidate]
    target.platform.rename("replica_1", target.database, candidate, "t")
    assert target.tables()[0]["t"] == before
