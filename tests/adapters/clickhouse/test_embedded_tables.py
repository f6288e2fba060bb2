"""Creating, seeing, swapping and dropping tables by identity."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform, definition_digest
from dpone.adapters.clickhouse.identity import key_columns
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.ports import Swap, SwapForm
from dpone.domain.tables import Column, TableDefinition, TableIdentity, TargetRef

GENERATION = "0123456789abcdef" * 2
ODD = "we`ird\\ 'na\"me\n; DROP TABLE x --"
TWO = (Column("a", "Int32"), Column("b", "String"))


def _tables(platform: EmbeddedPlatform, table: str = "t") -> dict[str, TableIdentity]:
    return dict(platform.look(TargetRef("platform", "db", table))[0].tables)


@pytest.mark.parametrize(
    "definition",
    [
        TableDefinition(TWO),
        TableDefinition(TWO, order_by=("b", "a")),
        TableDefinition(TWO, engine="ReplacingMergeTree", order_by=("a",), partition_by="b"),
        TableDefinition((Column(ODD, "String"), Column("d", "Date")), order_by=(ODD, "d"), partition_by="toYYYYMM(d)"),
        TableDefinition((Column("x", "DateTime64( 3,'UTC' )"), Column("y", "Nullable( Decimal(9,2))"))),
    ],
)
def test_what_was_created_has_the_digest_of_its_definition(
    platform: EmbeddedPlatform, definition: TableDefinition
) -> None:
    platform.create("db", "t", definition)
    digest = _tables(platform)["t"].digest
    assert digest == definition_digest(definition.columns, definition.order_by, definition.engine)
    assert digest != definition_digest(definition.columns[::-1], definition.order_by, definition.engine)


def test_names_of_any_characters_are_names_only(platform: EmbeddedPlatform) -> None:
    platform.create(ODD, "x", TableDefinition(TWO))
    platform.create(ODD, ODD, TableDefinition((Column(ODD, "String"),)))
    platform.rename("embedded", ODD, ODD, ODD + "2")
    assert set(platform.look(TargetRef("", ODD, ODD + "2"))[0].tables) == {ODD + "2"}
    assert set(platform.look(TargetRef("", ODD, "x"))[0].tables) == {"x"}


def test_look_takes_the_targets_own_names_only(platform: EmbeddedPlatform) -> None:
    ours = ["a", f"__dpone_a_{GENERATION}_c1_1", f"__dpone_a_{GENERATION}_pred"]
    for name in [*ours, "a_b", f"__dpone_a_b_{GENERATION}_c1_1", "__dpone_a_mine", f"__dpone_a_{GENERATION}x"]:
        platform.create("db", name, TableDefinition(TWO))
    assert sorted(_tables(platform, "a")) == sorted(ours)
    assert _tables(platform, "absent") == {}
    assert platform.look(TargetRef("", "no such database", "t"))[0].tables == {}


def test_create_refuses_a_name_that_exists(platform: EmbeddedPlatform) -> None:
    platform.create("db", "t", TableDefinition(TWO))
    before = _tables(platform)
    with pytest.raises(EngineFailed) as caught:
        platform.create("db", "t", TableDefinition((Column("c", "Int8"),)))
    assert caught.value.engine_code == 57
    assert _tables(platform) == before


def _swap(form: SwapForm) -> Swap:
    return Swap("db", "t", "candidate", "arm", "predecessor", form)


def test_a_swap_exchanges_identities_and_sending_it_again_swaps_back(platform: EmbeddedPlatform) -> None:
    platform.create("db", "t", TableDefinition(TWO))
    platform.create("db", "candidate", TableDefinition(TWO))
    old, new = _tables(platform)["t"], _tables(platform, "candidate")["candidate"]
    platform.swap(_swap(SwapForm.EXCHANGE))
    assert _tables(platform)["t"] == new
    assert _tables(platform, "candidate")["candidate"] == old


def test_a_first_publication_is_a_rename_that_never_replaces(platform: EmbeddedPlatform) -> None:
    platform.create("db", "candidate", TableDefinition(TWO))
    new = _tables(platform, "candidate")["candidate"]
    platform.swap(_swap(SwapForm.FIRST))
    assert _tables(platform)["t"] == new
    platform.create("db", "candidate", TableDefinition(TWO))
    with pytest.raises(EngineFailed):
        platform.swap(_swap(SwapForm.FIRST))
    assert _tables(platform)["t"] == new


def test_only_the_very_table_is_dropped(platform: EmbeddedPlatform) -> None:
    platform.create("db", "t", TableDefinition(TWO))
    identity = _tables(platform)["t"]
    other = TableIdentity("00000000-0000-0000-0000-000000000001", identity.digest)
    assert platform.drop("embedded", "db", "t", other) is False
    assert platform.drop("embedded", "db", "t", identity) is True
    assert platform.drop("embedded", "db", "t", identity) is False


def test_identities_survive_release(platform: EmbeddedPlatform, table_of: Callable[..., tuple[Column, ...]]) -> None:
    table_of("t", [("a", "Int32")], [(1,), (2,)])
    before = _tables(platform)
    platform.release()
    platform.release()
    assert _tables(platform) == before
    assert platform.row_count("db", "t") == {"embedded": 2}


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (TableDefinition((Column("a", "Nullable(Int32)"),), order_by=("a",)), "a key column cannot hold NULL"),
        (TableDefinition(TWO, order_by=("z",)), "not a column"),
        (TableDefinition(TWO, engine="Memory"), "not one of MergeTree"),
        (TableDefinition((Column("a", "Array(Int8)"),)), "is not one of"),
        (TableDefinition((Column("a", "Int8"), Column("a", "Int8"))), "twice"),
        (TableDefinition(TWO, partition_by="a) SETTINGS x = (1"), "partition_by"),
        (TableDefinition(()), "0 columns"),
    ],
)
def test_what_cannot_become_a_table_is_said_before_anything_is_created(
    platform: EmbeddedPlatform, definition: TableDefinition, words: str
) -> None:
    assert any(words in reason for reason in platform.refusals(TargetRef("", "db", "t"), definition))
    with pytest.raises(EngineFailed) as caught:
        platform.create("db", "t", definition)
    assert caught.value.code is ErrorCode.EVIDENCE_UNSUPPORTED
    assert words in caught.value.what
    assert _tables(platform) == {}


def test_a_printed_sorting_key_is_read_as_columns() -> None:
    assert key_columns("") == ()
    assert key_columns("a, `b c`, `d\\`e`") == ("a", "b c", "d`e")
    assert key_columns("(a)") == ("a",)
    assert key_columns("(a + b), c") == ("(a + b), c",)
    assert key_columns("toDate(a), b") == ("toDate(a), b",)
