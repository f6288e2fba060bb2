"""What stands in the way of a swap is said, with names, before anything is read."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform, embedded, folder
from dpone.domain.tables import Column, TableDefinition, TargetRef

TARGET = TargetRef("platform", "db", "t")
DEFINITION = TableDefinition((Column("a", "Int32"), Column("b", "String")))


def _run(platform: EmbeddedPlatform, *statements: str) -> None:
    for statement in statements:
        platform._run("preparing a test", statement)


def test_a_plain_table_or_none_is_welcome(platform: EmbeddedPlatform) -> None:
    assert platform.refusals(TARGET, DEFINITION) == ()
    platform.create("db", "t", DEFINITION)
    _run(platform, "CREATE VIEW db.v AS SELECT a FROM db.t")
    assert platform.refusals(TARGET, DEFINITION) == ()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE VIEW db.t AS SELECT 1 AS a", "is a view"),
        ("CREATE TABLE db.t (a Int32) ENGINE = Memory", "has the engine Memory"),
        ("CREATE TABLE db.t (a Int32, s Int8) ENGINE = CollapsingMergeTree(s) ORDER BY a", "CollapsingMergeTree"),
    ],
)
def test_only_a_merge_tree_table_can_be_replaced(platform: EmbeddedPlatform, statement: str, words: str) -> None:
    _run(platform, "CREATE DATABASE db ENGINE = Atomic", statement)
    (reason,) = platform.refusals(TARGET, DEFINITION)
    assert words in reason


def test_a_dictionary_is_no_target(platform: EmbeddedPlatform) -> None:
    platform.create("db", "s", DEFINITION)
    dictionary = "SOURCE(CLICKHOUSE(TABLE 's' DB 'db')) LAYOUT(FLAT()) LIFETIME(0)"
    _run(platform, f"CREATE DICTIONARY db.t (a Int32, b String) PRIMARY KEY a {dictionary}")
    assert "is a dictionary" in platform.refusals(TARGET, DEFINITION)[0]


def test_another_database_engine_is_refused(platform: EmbeddedPlatform) -> None:
    _run(platform, "CREATE DATABASE db ENGINE = Memory")
    (reason,) = platform.refusals(TARGET, DEFINITION)
    assert "engine Memory; only Atomic" in reason


def test_a_time_zone_that_the_engine_does_not_know_is_refused_before_a_table_is_created(
    platform: EmbeddedPlatform,
) -> None:
    known = (Column("a", "DateTime('Europe/Berlin')"), Column("b", "DateTime64(3, 'UTC')"))
    assert platform.refusals(TARGET, TableDefinition(known)) == ()
    unknown = Column("c", "Nullable(DateTime64(3, 'Mars/Olympus'))")
    (reason,) = platform.refusals(TARGET, TableDefinition((*known, unknown)))
    assert "Column c is in the time zone 'Mars/Olympus'" in reason


def test_dependents_are_named(platform: EmbeddedPlatform) -> None:
    platform.create("db", "t", DEFINITION)
    platform.create("db", "o", DEFINITION)
    dictionary = "SOURCE(CLICKHOUSE(TABLE 't' DB 'db')) LAYOUT(FLAT()) LIFETIME(0)"
    _run(
        platform,
        "CREATE MATERIALIZED VIEW db.reads TO db.o AS SELECT a, b FROM db.t",
        "CREATE MATERIALIZED VIEW db.writes TO db.t AS SELECT a, b FROM db.o WHERE a > 5",
        f"CREATE DICTIONARY db.shows (a Int32, b String) PRIMARY KEY a {dictionary}",
    )
    reasons = platform.refusals(TARGET, DEFINITION)
    assert [name for reason in reasons for name in ("reads", "writes", "shows") if f"db.{name}" in reason] == [
        "shows",
        "reads",
        "writes",
    ]


def test_no_exchange_and_an_unknown_answer_are_two_answers(
    platform: EmbeddedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "can_exchange", lambda _: False)
    assert "does not support it" in platform.refusals(TARGET, DEFINITION)[0]

    def fails(_: Path) -> bool:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(folder, "can_exchange", fails)
    assert "could not be found out" in platform.refusals(TARGET, DEFINITION)[0]


def test_the_engine_that_cannot_exchange_is_believed(
    platform: EmbeddedPlatform,
) -> None:
    _run(platform, "CREATE DATABASE db ENGINE = Memory")
    assert "the engine does not support it" in (platform._exchange_refusal("db") or "")


def test_the_file_system_is_really_tried(tmp_path: Path) -> None:
    assert folder.can_exchange(tmp_path) is True
    assert list(tmp_path.iterdir()) == []
    assert embedded.REPLICA == "embedded"
