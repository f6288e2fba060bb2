"""What the protocol may rely on from every platform: the same cases on the embedded engine and on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.names import arm_name, candidate_name, generation_of, predecessor_name
from dpone.domain.ports import Swap, SwapForm, TargetPlatform
from dpone.domain.tables import Column, Metrics, TableDefinition, TableIdentity, TargetRef

from .conftest import platform_on

pa = pytest.importorskip("pyarrow")

COLUMNS = (Column("a", "Int64"), Column("b", "Nullable(String)"))


class Subject:
    """A platform, a database on it, and the engine that its tables have."""

    def __init__(self, platform: TargetPlatform, database: str, engine: str) -> None:
        self.platform = platform
        self.database = database
        self.definition = TableDefinition(COLUMNS, engine, ("a",))
        self.ref = TargetRef("platform", database, "t")

    def candidate(self, rows: int = 0) -> str:
        name = candidate_name("t", uuid4().hex, 1, 1)
        self.platform.create(self.database, name, self.definition)
        if rows:
            self.platform.fill(self.database, name, COLUMNS, [batch(rows)])
            self.platform.synchronise(self.database, name)
        return name

    def publish(self, candidate: str) -> Swap:
        live = "t" in self.tables()[0]
        form = SwapForm.FIRST
        if live:
            form = SwapForm.EXCHANGE if self.platform.exchanges(self.database) else SwapForm.RENAME
        generation = str(generation_of(candidate))
        arm, predecessor = arm_name("t", generation, 1, 1), predecessor_name("t", generation)
        swap = Swap(self.database, "t", candidate, arm, predecessor, form)
        self.platform.swap(swap)
        return swap

    def tables(self) -> list[dict[str, TableIdentity]]:
        looks = self.platform.look(self.ref)
        assert [look.replica for look in looks] == list(self.platform.replicas)
        assert all(look.reachable for look in looks)
        return [dict(look.tables) for look in looks]


def batch(rows: int) -> Any:
    return pa.record_batch([pa.array(range(rows), pa.int64()), pa.array([None, *["x"] * (rows - 1)])], ["a", "b"])


@pytest.fixture(params=["embedded", "cluster"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    if request.param == "embedded":
        embedded = EmbeddedPlatform(tmp_path / "engine", wait_seconds=1)
        yield Subject(embedded, "db", "MergeTree")
        embedded.release()
        return
    made = platform_on(request.getfixturevalue("replicated_cluster"))
    yield Subject(made, request.getfixturevalue("cluster_database"), "ReplicatedMergeTree")


def test_acquiring_and_releasing_may_be_repeated(subject: Subject) -> None:
    subject.platform.prepare(subject.database)
    for _ in range(2):
        subject.platform.acquire()
    for _ in range(2):
        subject.platform.release()
    assert subject.platform.refusals(subject.ref, subject.definition) == ()


def test_a_whole_publication_after_another(subject: Subject) -> None:
    """Created, filled, equal everywhere, swapped; what was live before is still there under another name."""
    first = subject.candidate(rows=10)
    assert subject.platform.row_count(subject.database, first) == dict.fromkeys(subject.platform.replicas, 10)
    old = subject.tables()[0][first]
    subject.publish(first)
    assert subject.tables() == [{"t": old}] * len(subject.platform.replicas)
    second = subject.candidate(rows=20)
    new = subject.tables()[0][second]
    assert old != new
    swap = subject.publish(second)
    for tables in subject.tables():
        assert tables.pop("t") == new
        assert list(tables.values()) == [old]
        assert set(tables) <= {swap.candidate, swap.predecessor}
    counted = subject.platform.observe(subject.database, "t", COLUMNS, Metrics(("b",), ("a", "b"), True))
    assert (counted.row_count, counted.null_counts["b"], counted.distinct_counts["a"]) == (20, 1, 20)


def test_every_definition_is_seen_as_it_was_made(subject: Subject) -> None:
    from dpone.adapters.clickhouse import definition_digest

    candidate = subject.candidate()
    expected = definition_digest(COLUMNS, ("a",), subject.definition.engine)
    assert {tables[candidate].digest for tables in subject.tables()} == {expected}


def test_two_tables_of_one_definition_are_two_identities(subject: Subject) -> None:
    first, second = subject.candidate(), subject.candidate()
    for tables in subject.tables():
        assert tables[first].digest == tables[second].digest
        assert tables[first].id != tables[second].id


def test_a_name_that_exists_is_not_created_again(subject: Subject) -> None:
    candidate = subject.candidate(rows=3)
    with pytest.raises(EngineFailed) as caught:
        subject.platform.create(subject.database, candidate, subject.definition)
    assert caught.value.engine_code == 57
    assert subject.platform.row_count(subject.database, candidate)[subject.platform.replicas[0]] == 3


def test_drop_is_of_that_very_table_or_of_none(subject: Subject) -> None:
    first, second = subject.candidate(), subject.candidate()
    replica = subject.platform.replicas[0]
    identity = subject.tables()[0][first]
    assert subject.platform.drop(replica, subject.database, second, identity) is False
    assert subject.platform.drop(replica, subject.database, first, identity) is True
    assert subject.platform.drop(replica, subject.database, first, identity) is False
    assert set(subject.tables()[0]) == {second}


def test_a_rename_moves_one_table_on_one_replica(subject: Subject) -> None:
    candidate = subject.candidate()
    last = subject.platform.replicas[-1]
    identity = subject.tables()[-1][candidate]
    subject.platform.rename(last, subject.database, candidate, "t")
    assert subject.tables()[-1] == {"t": identity}


def test_a_null_where_none_may_be_is_refused(subject: Subject) -> None:
    candidate = subject.candidate()
    rows = pa.record_batch([pa.array([None], pa.int64()), pa.array(["x"])], ["a", "b"])
    with pytest.raises(EngineFailed) as caught:
        subject.platform.fill(subject.database, candidate, COLUMNS, [rows])
    assert caught.value.code is ErrorCode.VALUE_REFUSED


def test_counting_bounds_its_memory(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """More distinct values than may be held are an error and no other number."""
    from dpone.adapters.clickhouse import observation_sql

    candidate = subject.candidate(rows=100)
    monkeypatch.setattr(observation_sql, "DISTINCT_VALUES_MAX", 50)
    monkeypatch.setattr(
        observation_sql, "_DISTINCT_LIMIT", {"max_rows_in_distinct": 50, "distinct_overflow_mode": "throw"}
    )
    with pytest.raises(EngineFailed) as caught:
        subject.platform.observe(subject.database, candidate, COLUMNS, Metrics((), ("a",)))
    assert caught.value.code is ErrorCode.EVIDENCE_UNSUPPORTED


def test_a_report_about_nothing_is_empty(subject: Subject) -> None:
    assert subject.platform.reported("__dpone_t_nothing") == {}
