"""What cannot be published to is found out before anything is read, each with its own sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone.adapters.cluster import probing
from dpone.adapters.cluster.inspection import writes_into
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.adapters.cluster.session import Endpoint
from dpone.adapters.connections import Connection
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.ports import SwapForm
from dpone.domain.tables import Column, TableDefinition
from tests.servers.cluster import PASSWORDS

from .conftest import COLUMNS, DEFINITION, QUICK, Target, platform_on

CONNECTION = Connection("replay_target", "127.0.0.1", username="dpone", password=PASSWORDS.dpone)


def refusals(target: Target, definition: TableDefinition = DEFINITION) -> tuple[str, ...]:
    return target.platform.refusals(target.ref, definition)


def test_a_new_and_a_published_target_are_taken(target: Target) -> None:
    assert refusals(target) == ()
    target.publish_first()
    assert refusals(target) == ()


def test_what_was_begun_for_one_database_says_nothing_of_another(target: Target) -> None:
    target.platform.prepare("no_such_database")
    assert target.platform.refusals(target.ref, DEFINITION) == ()
    target.platform.prepare(target.database)
    assert target.platform.refusals(target.ref, DEFINITION) == ()


def test_refusals_change_nothing(target: Target) -> None:
    target.publish_first()
    before = target.tables()
    refusals(target)
    assert target.tables() == before


@pytest.mark.parametrize(
    ("created", "sentence"),
    [
        ("VIEW {t} AS SELECT 1 AS a", "is a view"),
        ("MATERIALIZED VIEW {t} ENGINE = Memory AS SELECT number AS a FROM system.numbers", "is a view"),
        ("TABLE {t} (a Int8) ENGINE = MergeTree ORDER BY a", "has the engine MergeTree"),
        ("TABLE {t} (a Int8) ENGINE = Memory", "has the engine Memory"),
    ],
)
def test_another_kind_of_table(target: Target, created: str, sentence: str) -> None:
    target.cluster.replicas[1].execute("CREATE " + created.format(t=f"{target.database}.t"))
    (refusal,) = refusals(target)
    assert sentence in refusal


@pytest.mark.parametrize(
    ("created", "reason"),
    [
        ("MATERIALIZED VIEW {d}.v ENGINE = Memory AS SELECT a FROM {d}.t", "fed by inserts into it"),
        ("MATERIALIZED VIEW {d}.v TO {d}.t AS SELECT a FROM {d}.other", "writing into it"),
        ("MATERIALIZED VIEW {d}.`v w` TO {d}.`t` AS SELECT a FROM {d}.other", "writing into it"),
    ],
)
def test_dependents_that_a_swap_breaks_are_named(target: Target, created: str, reason: str) -> None:
    target.publish_first()
    second = target.cluster.replicas[1]
    second.execute(f"CREATE TABLE {target.database}.other (a Int64) ENGINE = Memory")
    second.execute("CREATE " + created.format(d=target.database))
    (refusal,) = refusals(target)
    assert f"{target.database}.v" in refusal
    assert reason in refusal


def test_views_and_distributed_tables_read_by_name_and_survive(target: Target) -> None:
    target.publish_first(rows=3)
    execute, database = target.cluster.execute, target.database
    execute(f"CREATE VIEW {database}.v AS SELECT count() AS n FROM {database}.t")
    execute(f"CREATE TABLE {database}.d AS {database}.t ENGINE = Distributed(replay_cluster, {database}, t)")
    assert refusals(target) == ()
    target.platform.swap(target.swap(target.candidate(rows=5), SwapForm.RENAME))
    assert execute(f"SELECT n FROM {database}.v") == execute(f"SELECT count() FROM {database}.d") == [(5,)]


def test_a_database_that_a_replica_lacks(target: Target) -> None:
    target.cluster.replicas[1].execute(f"DROP DATABASE {target.database}")
    assert refusals(target) == (f"The database {target.database} does not exist on replica replica_2.",)


def test_a_database_of_another_engine(target: Target) -> None:
    second = target.cluster.replicas[1]
    second.execute(f"DROP DATABASE {target.database}")
    second.execute(f"CREATE DATABASE {target.database} ENGINE = Memory")
    engine, different = refusals(target)
    assert "has the engine Memory" in engine
    assert "different engines on different replicas" in different


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        (replace(DEFINITION, engine="MergeTree"), "The engine MergeTree is not one of ReplicatedMergeTree"),
        (replace(DEFINITION, engine="ReplicatedCollapsingMergeTree"), "is not one of"),
        (replace(DEFINITION, order_by=()), "no sorting key"),
        (replace(DEFINITION, order_by=("b",)), "a key column cannot hold NULL"),
        (TableDefinition((*COLUMNS, Column("c", "Bool")), DEFINITION.engine, ("a",)), "ClickHouse 18.16"),
        (TableDefinition((*COLUMNS, Column("c", "DateTime64(3)")), DEFINITION.engine, ("a",)), "ClickHouse 18.16"),
        (TableDefinition((*COLUMNS, Column("c", "Array(Int8)")), DEFINITION.engine, ("a",)), "is not one of"),
    ],
)
def test_a_definition_that_no_replica_can_hold(target: Target, definition: TableDefinition, sentence: str) -> None:
    (refusal,) = refusals(target, definition)
    assert sentence in refusal


def on_cluster(target: Target, name: str) -> ReplicatedPlatform:
    return platform_on(target.cluster, name=name)


def test_a_cluster_of_several_shards(target: Target) -> None:
    (refusal,) = on_cluster(target, "two_shards").refusals(target.ref, DEFINITION)
    assert "has 2 shards" in refusal


def test_a_cluster_that_nobody_knows(target: Target) -> None:
    first, second = on_cluster(target, "nowhere").refusals(target.ref, DEFINITION)
    assert "replica_1 does not know the cluster nowhere" in first
    assert "replica_2" in second


def test_an_admitted_replica_that_the_cluster_lacks(target: Target) -> None:
    endpoints = [Endpoint(one.name, "127.0.0.1", one.port) for one in target.cluster.replicas]
    third = Endpoint("replica_3", "localhost", endpoints[0].port)  # the same server under another name
    platform = ReplicatedPlatform(CONNECTION, [*endpoints, third], "replay_cluster", "p", QUICK)
    first, *others = platform.refusals(target.ref, DEFINITION)
    assert "replica_1 knows the cluster replay_cluster without replica_3" in first
    assert len(others) == 2


def test_a_replica_that_was_excluded_gets_no_statement_although_the_cluster_has_it(target: Target) -> None:
    """Not even later: a statement of the cluster would wait for it, and run there when it comes back."""
    one = Endpoint("replica_1", "127.0.0.1", target.cluster.replicas[0].port)
    alone = ReplicatedPlatform(CONNECTION, [one], "replay_cluster", "alone", QUICK)
    both, target.platform = target.platform, alone
    for form in (SwapForm.FIRST, SwapForm.RENAME):
        assert refusals(target) == ()
        candidate = target.candidate(rows=3)
        alone.swap(target.swap(candidate, form))
        assert alone.reported(candidate) == {}
    target.platform = both
    assert target.names() == [["pred", "t"], []]


def test_a_read_only_replica_is_not_refused_but_waited_for(breakable: Target) -> None:
    """Old servers look for a Keeper that came back every ten seconds, and their tables are read-only until then."""
    breakable.publish_first()
    breakable.cluster.keeper.kill()
    breakable.cluster.keeper.start()
    told: set[str] = set()
    while "read-only" not in " ".join(told):
        with pytest.raises(EngineFailed) as caught:  # at first the Keeper does not answer
            refusals(breakable)
        assert caught.value.code in (ErrorCode.REPLICA_UNREACHABLE, ErrorCode.EVIDENCE_INCOMPLETE)
        told.add(caught.value.what)


def test_a_replica_that_is_down_is_unreachable_and_no_refusal(breakable: Target) -> None:
    breakable.cluster.replicas[1].kill()
    with pytest.raises(EngineFailed) as caught:
        refusals(breakable)
    assert caught.value.code is ErrorCode.REPLICA_UNREACHABLE
    assert "replica_2" in caught.value.what
    (refusal,) = refusals(breakable, replace(DEFINITION, engine="MergeTree"))  # this one would not pass
    assert "MergeTree" in refusal


def test_replicas_without_their_keeper_are_not_ready(breakable: Target) -> None:
    breakable.cluster.keeper.freeze()
    with pytest.raises(EngineFailed) as caught:
        refusals(breakable)
    assert caught.value.code in (ErrorCode.REPLICA_UNREACHABLE, ErrorCode.EVIDENCE_INCOMPLETE)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        (60, None),
        (62, "do not support RENAME"),
        (48, "do not support RENAME"),
        (49, "no distributed_ddl configured"),
        (139, "no distributed_ddl configured"),
        (497, "may not rename"),
    ],
)
def test_a_probe_that_was_answered(code: int, part: str | None) -> None:
    error = EngineFailed(ErrorCode.EVIDENCE_INCOMPLETE, "what", engine_code=code)
    told = probing.answer(SwapForm.RENAME, "replay_cluster", error)
    assert (told is None) if part is None else (told is not None and part in told)


@pytest.mark.parametrize("code", [159, 999, None])
def test_a_probe_that_was_not_answered_is_another_error(code: int | None) -> None:
    error = EngineFailed(ErrorCode.REPLICA_UNREACHABLE, "what", engine_code=code)
    with pytest.raises(EngineFailed) as caught:
        probing.answer(SwapForm.RENAME, "replay_cluster", error)
    assert "could not be found out" in caught.value.what


@pytest.mark.parametrize(
    ("statement", "writes"),
    [
        ("CREATE MATERIALIZED VIEW d.v TO d.t (a Int8) AS SELECT 1", True),
        ("CREATE MATERIALIZED VIEW d.`a TO b` TO `d`.`t` (a Int8) AS SELECT 1", True),
        ("CREATE MATERIALIZED VIEW d.v TO t (a Int8) AS SELECT 1", True),
        ("CREATE MATERIALIZED VIEW e.v TO e.t (a Int8) AS SELECT 1", False),
        ("CREATE MATERIALIZED VIEW d.v TO d.t2 (a Int8) AS SELECT ' TO d.t '", False),
        ("CREATE MATERIALIZED VIEW d.v (a Int8) ENGINE = Memory AS SELECT 1 FROM d.t", False),
    ],
)
def test_where_a_materialized_view_writes(statement: str, writes: bool) -> None:
    assert writes_into(statement, "d", "d", "t") is writes
