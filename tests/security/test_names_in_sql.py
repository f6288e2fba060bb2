"""Hostile names and texts reach real engines, today's and 18.16, and stay names and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone.adapters.clickhouse import engine_session, identity
from dpone.adapters.clickhouse.definitions import column_list, definition_refusals
from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.adapters.clickhouse.quoting import identifier, literal, settings_clause, table_name
from dpone.adapters.cluster.statements import ENGINES, create_table, path_of, rename_table
from dpone.domain.errors import LedgerFailed
from dpone.domain.tables import Column, TableDefinition
from dpone.ledger.keepermap_layout import parse
from tests.servers.clickhouse import ClickHouseServer

HOSTILE = [
    "'; DROP TABLE t; --",
    "`; DROP TABLE t; --",
    "a`.`b",
    'a"b',
    "a\\",
    "a\\'",
    "a\\`",
    "\\x27",
    "{shard}",
    "{replica}",
    "a\nb\r\tc\bd\fe",
    "/* a */ -- b # c",
    "a;b",
    "\u2018\u02bc\uff07",
    "%s %(a)s {0} {} $1 ?",
    "x' OR '1'='1",
    "a\x0bb\x1b\x7f",
    "a\0b",
]
Ask = Callable[[str], Sequence[dict[str, Any]]]


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The embedded engine."""
    platform = EmbeddedPlatform(Path(tmp_path_factory.mktemp("engine")) / "data", wait_seconds=10)
    platform.acquire()
    yield lambda statement: engine_session.ask(platform._session, statement)
    platform.release()


@pytest.fixture
def old(clickhouse: ClickHouseServer) -> Ask:
    """18.16"""

    def ask(statement: str) -> list[dict[str, Any]]:
        return [{"found": row[0]} for row in clickhouse.execute(statement)]

    return ask


@pytest.fixture(params=["present", "old"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Either engine."""
    found: Ask = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_that_text(text: str, ask: Ask) -> None:
    assert ask(f"SELECT hex({literal(text)}) AS found") == [{"found": text.encode().hex().upper()}]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=20))
def test_any_texts_are_those_texts(present: Ask, clickhouse: ClickHouseServer, texts: list[str]) -> None:
    wanted = "|".join(text.encode().hex().upper() for text in texts)
    statement = f"SELECT arrayStringConcat([{', '.join(f'hex({literal(text)})' for text in texts)}], '|') AS found"
    assert present(statement) == [{"found": wanted}]
    assert clickhouse.execute(statement) == [(wanted,)]


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\0" not in name])
def test_a_name_is_one_name_of_a_column(name: str, ask: Ask) -> None:
    wanted = name.encode().hex().upper()
    inner = f"SELECT 7 AS {identifier(name)}"
    assert ask(f"SELECT {identifier(name)} AS found FROM ({inner})") == [{"found": 7}], wanted


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\0" not in name and "/" not in name])
def test_a_table_of_such_a_name_is_one_table(name: str, present: Ask) -> None:
    present("CREATE DATABASE IF NOT EXISTS names")
    columns = column_list(TableDefinition((Column(name, "Int8"),), "MergeTree", (name,)))
    present(f"CREATE TABLE {table_name('names', name)} {columns} ENGINE = MergeTree ORDER BY {identifier(name)}")
    found = present(f"SELECT name FROM system.tables WHERE database = 'names' AND name = {literal(name)}")
    listed = identity.read_identities(lambda text: list(present(text)), "names", f"name = {literal(name)}")
    present(f"DROP TABLE {table_name('names', name)} SYNC")
    assert found == [{"name": name}]
    assert list(listed) == [name]
    assert present("SELECT count() AS n FROM system.tables WHERE database = 'names'")[0]["n"] == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_every_part_of_a_statement_for_a_cluster_is_quoted(name: str) -> None:
    definition = TableDefinition((Column(name, "Int8"),), ENGINES[0], (name,))
    created = create_table(name, name, definition, path_of(name, name), name, name)
    for quoted in (identifier(name), literal(name), literal(path_of(name, name))):
        assert quoted in created
        created = created.replace(quoted, "")
    assert name not in created + rename_table(name, name, name).replace(identifier(name), "")
    assert settings_clause({"a": name}) == f" SETTINGS a = {literal(name)}"


@pytest.mark.parametrize("engine", [*HOSTILE, "MergeTree() AS SELECT 1", "URL('http://h')", "Null"])
def test_an_engine_is_a_word_of_a_short_list(engine: str) -> None:
    assert definition_refusals(TableDefinition((Column("a", "Int8"),), engine, ()), "t", ENGINES)


@pytest.mark.parametrize(
    "kind", ["Int8) ENGINE = Null --", "Int8 DEFAULT sleep(3)", "Int8, b Int8", "Int8 CODEC(NONE)"]
)
def test_a_type_is_a_type_and_nothing_behind_it(kind: str) -> None:
    assert definition_refusals(TableDefinition((Column("a", kind),), ENGINES[0], ()), "t", ENGINES)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_database_of_a_ledger_is_a_plain_word(name: str) -> None:
    for url in (f"ref/{name}", f"{name}/db", f"ref/db{name}"):
        with pytest.raises(LedgerFailed) as caught:
            parse(url)
        assert name not in str(caught.value.what)
