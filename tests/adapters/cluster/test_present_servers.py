"""What only a present server has, as far as the engine in process shows it: types, expressions, settings, statements.

That engine takes part in no cluster, so that ON CLUSTER, replicated tables and the queue's table are not tried here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.adapters.clickhouse.dialects import Dialect
from dpone.adapters.clickhouse.quoting import settings_clause
from dpone.adapters.cluster import dialect, native
from dpone.adapters.cluster.agreement import held_statement
from dpone.domain.ports import SwapForm
from dpone.domain.tables import Column, TableDefinition

pa = pytest.importorskip("pyarrow")

MOMENT = datetime(2024, 2, 29, 12, 30, 45, tzinfo=UTC)
CASES: list[tuple[str, Any, list[Any], str]] = [
    ("Bool", pa.bool_(), [True, False], "true,false"),
    ("Date32", pa.date32(), [date(1900, 1, 1), date(2299, 12, 31)], "1900-01-01,2299-12-31"),
    ("DateTime64(0, 'UTC')", pa.timestamp("s", "UTC"), [MOMENT], "2024-02-29 12:30:45"),
    ("DateTime64(1, 'UTC')", pa.timestamp("ms", "UTC"), [MOMENT.replace(microsecond=500_000)], "2024-02-29 12:30:45.5"),
    ("DateTime64(6, 'UTC')", pa.timestamp("us", "UTC"), [MOMENT.replace(microsecond=1)], "2024-02-29 12:30:45.000001"),
    ("DateTime64(9, 'UTC')", pa.timestamp("ns", "UTC"), [MOMENT], "2024-02-29 12:30:45.000000000"),
    ("Decimal(38, 2)", pa.decimal128(38, 2), [Decimal("-12345678901234567890.01")], "-12345678901234567890.01"),
    ("UUID", pa.string(), ["00112233-4455-6677-8899-aabbccddeeff"], "00112233-4455-6677-8899-aabbccddeeff"),
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EmbeddedPlatform]:
    embedded = EmbeddedPlatform(tmp_path / "engine", wait_seconds=1)
    embedded.acquire()
    yield embedded
    embedded.release()


def ask(engine: EmbeddedPlatform, statement: str) -> list[dict[str, Any]]:
    return engine._asking("testing", lambda query: query(statement))


@pytest.mark.parametrize("nullable", [False, True], ids=["", "nullable"])
@pytest.mark.parametrize(("type_name", "kind", "values", "shown"), CASES, ids=[case[0] for case in CASES])
def test_a_present_type_travels_in_the_same_blocks(
    engine: EmbeddedPlatform, tmp_path: Path, type_name: str, kind: Any, values: list[Any], shown: str, nullable: bool
) -> None:
    column = Column("v", f"Nullable({type_name})" if nullable else type_name)
    batch = pa.record_batch([pa.array([*values, None] if nullable else values, kind)], ["v"])
    path = tmp_path / "block.native"
    path.write_bytes(b"".join(native.block(batch, [column])))
    found = ask(engine, f"SELECT toString(v) AS v FROM file('{path}', 'Native')")
    assert [row["v"] for row in found] == shown.split(",") + ([None] if nullable else [])


def test_ticks_below_the_types_last_digit_are_refused() -> None:
    """Arrow's milliseconds for one decimal: a value with three would be rounded."""
    batch = pa.record_batch([pa.array([MOMENT.replace(microsecond=120_000)], pa.timestamp("ms", "UTC"))], ["v"])
    with pytest.raises(Exception, match="does not hold"):
        b"".join(native.block(batch, [Column("v", "DateTime64(1)")]))


def test_a_present_server_knows_every_setting_that_is_pinned(engine: EmbeddedPlatform) -> None:
    settings = {
        **dialect.settings_of_an_insert(Dialect.PRESENT, "token:0"),
        **dialect.settings_of_a_scan(Dialect.PRESENT),
        **dialect.settings_of_a_cluster_statement(5, as_text=True),
    }
    assert ask(engine, "SELECT 1 AS one" + settings_clause(settings)) == [{"one": 1}]


def test_tokens_differ_from_block_to_block_and_from_table_to_table() -> None:
    tokens = {
        dialect.settings_of_an_insert(Dialect.PRESENT, token)["insert_deduplication_token"]
        for token in ("a:0", "a:1", "b:0")
    }
    assert len(tokens) == 3
    assert dialect.one_insert_takes_all_blocks(Dialect.PRESENT) is False


def test_the_hash_of_rows_takes_every_present_type(engine: EmbeddedPlatform) -> None:
    columns = tuple(
        Column(f"c{number}", text)
        for number, (name, *_) in enumerate(CASES)
        for text in [name if number % 2 else f"Nullable({name})"]
    )
    engine.create("db", "t", TableDefinition(columns))
    statement = held_statement("db", "t", columns, Dialect.PRESENT)
    assert ask(engine, statement) == [{"held_rows": 0, "held_digest": 0}]


def test_the_state_of_a_table_and_its_columns_are_asked_as_a_present_server_answers(engine: EmbeddedPlatform) -> None:
    engine.create("db", "t", TableDefinition((Column("z", "Int8"), Column("a", "String")), order_by=("z",)))
    ask(engine, "CREATE TABLE db.other (z Int8, a String) ENGINE = MergeTree ORDER BY z")
    ask(engine, "CREATE MATERIALIZED VIEW db.v TO db.t AS SELECT * FROM db.other")
    columns = ask(engine, dialect.columns_of_tables(Dialect.PRESENT, "db", ["t"]))
    assert [row["name"] for row in columns] == ["z", "a"]
    (state,) = ask(engine, dialect.state_of_a_table(Dialect.PRESENT, "db", "other"))
    assert (state["engine"], state["reader_tables"], state["loaded_tables"]) == ("MergeTree", ["v"], [])
    (writer,) = ask(engine, dialect.materialized_views_into(Dialect.PRESENT, "db", "t"))
    assert (writer["database"], writer["name"]) == ("db", "v")


def test_an_exchange_and_a_drop_are_spoken_as_a_present_server_understands(engine: EmbeddedPlatform) -> None:
    for name in ("candidate", "t"):
        engine.create("db", name, TableDefinition((Column(name, "Int8"),)))
    names = ("candidate", "arm", "t", "predecessor")
    ask(engine, dialect.swap_statement(SwapForm.EXCHANGE, "db", names, None))
    assert ask(engine, dialect.columns_of_tables(Dialect.PRESENT, "db", ["t"]))[0]["name"] == "candidate"
    ask(engine, dialect.swap_statement(SwapForm.RENAME, "db", names, None))
    ask(engine, dialect.drop_table(Dialect.PRESENT, "db", "predecessor"))
    assert ask(engine, "SELECT name FROM system.tables WHERE database = 'db'") == [{"name": "t"}]


def test_where_two_tables_can_be_exchanged() -> None:
    assert dialect.can_exchange(Dialect.PRESENT, "Atomic")
    assert not dialect.can_exchange(Dialect.PRESENT, "Ordinary")
    assert not dialect.can_exchange(Dialect.V18, "Atomic")


def test_a_present_database_gets_the_engine_of_the_others(engine: EmbeddedPlatform) -> None:
    ask(engine, dialect.create_database(Dialect.PRESENT, "made", "Atomic"))
    assert ask(engine, "SELECT engine FROM system.databases WHERE name = 'made'") == [{"engine": "Atomic"}]
