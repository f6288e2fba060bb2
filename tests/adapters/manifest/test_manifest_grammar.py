"""Every mistake of an author is refused at its line and column, with what is accepted."""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any

import pytest

from dpone.adapters.manifest import load_manifest
from dpone.domain.configuration import Process, SourceType, default_options
from dpone.domain.errors import DponeError

from .conftest import PROCESS, Refusals, Write, flow_of

STORAGE = "sink.options.physical_design.storage.clickhouse"
MISSING = object()


def changed(where: str, value: Any) -> dict[str, Any]:
    """The smallest process with one field set (or, for MISSING, removed)."""
    process = copy.deepcopy(PROCESS)
    *above, last = where.split(".")
    here = process
    for step in above:
        here = here.setdefault(step, {})
    if value is MISSING:
        del here[last]
    else:
        here[last] = value
    return process


@pytest.mark.parametrize(
    ("where", "value", "sentence"),
    [
        ("sink.options.durable_quality_replay", "true", "must be true or false, not text"),
        ("sink.options.durable_quality_replay", 1, "must be true or false, not a whole number"),
        ("sink.options.durable_quality_replay", Decimal("1.0"), "must be true or false"),
        ("sink.options.durable_quality_replay", None, "must not be empty (null)"),
        ("sink.options.lineage", "yes", "must be true or false, not text"),
        ("sink.options.durable_quality_repaly", True, "did you mean 'durable_quality_replay'?"),
        ("sink.strategy.keep_generations", True, "from 0 to 7, not a boolean"),
        ("sink.strategy.keep_generations", 8, "from 0 to 7"),
        ("sink.strategy.keep_generations", -1, "from 0 to 7"),
        ("sink.strategy.max_source_bytes", 0, "from 1 to 9007199254740991"),
        ("sink.strategy.max_source_bytes", "1", "not text"),
        ("sink.strategy.mode", "full_refesh", "did you mean 'full_refresh'?"),
        ("sink.strategy.mode", "append", "must be full_refresh"),
        ("sink.columns", {}, "must be a mapping of column names to ClickHouse types"),
        ("sink.columns", ["a"], "must be a mapping of column names to ClickHouse types"),
        ("sink.columns", {"a": "UInt99"}, "sink.columns.a: must be one of: Int8"),
        ("sink.columns", {"a": 1}, "sink.columns.a: must be a ClickHouse type's name"),
        ("sink.columns", {"a": "Nullable(" * 5000}, "sink.columns.a: must be a ClickHouse type's name"),
        ("sink.connection_ref", "a-b", "a connection's name"),
        ("sink.connection_ref", MISSING, "sink.connection_ref: required"),
        ("sink.type", "postgres", "must be clickhouse"),
        ("sink.table.name", "a.b", "must be a name"),
        ("sink.table.name", " a", "surrounding spaces"),
        ("sink.table.name", "__dpone_t", "belong to this tool's own tables"),
        ("sink.table.name", MISSING, "sink.table.name: required, since the source is no table"),
        ("sink.schema_change", "drop", "must be one of refuse, add, follow"),
        (f"{STORAGE}.engine", "ReplacingMergeTree", "must be MergeTree or ReplicatedMergeTree"),
        (f"{STORAGE}.order_by", "a", "must be a list, not text"),
        (f"{STORAGE}.order_by", ["a", "a"], "order_by[1]: stands in the list a second time"),
        (f"{STORAGE}.partition_by", "a); DROP TABLE b", "must be a column or a date function"),
        (f"{STORAGE}.cluster", {"name": "c", "ddl_scope": "host"}, "must be cluster"),
        (f"{STORAGE}.cluster", {"name": "c", "replication_mode": "external"}, "must be internal"),
        ("source.type", "cvs", "did you mean 'csv'?"),
        ("source.path", MISSING, "source.path: required for a csv source"),
        ("source.path", "https://host/a.csv", "must be the path of a local file (no URL)"),
        ("source.connection_ref", "c", "a csv source has no connection_ref"),
        ("source.query", "SELECT 1", "a csv source has no query"),
        ("source.options.header", 1, "must be true or false"),
        ("source.options.delimiter", ";;", "text of one character"),
        ("source.options.delimiter", '"', "must differ from quote"),
        ("source.options.null_values", "NA", "must be a list"),
        ("source.options.delimeter", ";", "did you mean 'delimiter'?"),
        ("quality.gates", {}, "must be a list"),
        ("quality.gates", [{"type": "min_rows"}], "quality.gates[0].rows: required for a min_rows gate"),
        ("quality.gates", [{"type": "min_rows", "rows": True}], "not a boolean"),
        ("quality.gates", [{"type": "min_row", "rows": 1}], "did you mean 'min_rows'?"),
        ("quality.gates", [{"type": "typed_hash_reconciliation", "rows": 1}], "has no rows"),
        ("quality.gates", [{"type": "typed_hash_reconciliation"}] * 2, "quality.gates[1].id: another gate has this id"),
        ("quality.gates", [{"type": "typed_hash_reconciliation", "severity": "info"}], "must be error or warning"),
        ("quality.gates", [{"type": "typed_hash_reconciliation", "id": str(i)} for i in range(65)], "at most 64"),
        ("quality.acceptance", None, "must not be empty (null)"),
        ("quality.acceptance", {"enabled": "yes"}, "must be true or false"),
        ("quality.acceptance.mode", "optional", "must be required or warn_only"),
        ("quality.acceptance.checks.null_counts", [1], "null_counts[0]: must be a column's name"),
        (
            "quality.acceptance.capture",
            {"source": False, "staged": False, "target": False},
            "nothing would be observed",
        ),
        ("name", MISSING, "name: required"),
        ("name", "a,b", "without * ? , ! :"),
        ("name", "a" * 251, "of 1 to 250 characters"),
        ("name", 5, "not a whole number (put it in quotes)"),
        ("name", "a\nb", "without control characters"),
        ("depends_on", "refresh", "must be a list"),
        ("depends_on", ["other"], "no process of this manifest"),
        ("depends_on", ["refresh"], "wait for each other: refresh → refresh"),
    ],
)
def test_one_mistake_is_one_sentence(where: str, value: Any, sentence: str, refusals: Refusals) -> None:
    found = refusals(flow_of(changed(where, value)))

    assert len(found) == 1
    assert sentence in found[0]
    assert found[0].startswith("m.yaml:1:")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("{mode: absolute, value: -1}", "must be zero or more"),
        ("{mode: absolute, value: -0.5}", "must be zero or more"),
        ("{mode: absolute, value: .nan}", "NaN and infinity are refused"),
        ("{mode: absolute, value: .inf}", "NaN and infinity are refused"),
        ("{mode: absolute, value: true}", "must be a number, zero or more, not a boolean"),
        ("{mode: absolute, value: '0'}", "must be a number, zero or more, not text"),
        ("{mode: absolute, value: 1e999999999}", "at most 15 digits"),
        ("{mode: absolute, value: 1e-999999999}", "9 decimals"),
        ("{mode: percent, value: 100.1}", "must be from 0 to 100 percent"),
        ("{mode: ratio, value: 1}", "must be absolute or percent"),
        ("{mode: absolute}", "value: required"),
        ("{value: 1}", "mode: required"),
    ],
)
def test_a_tolerance_that_would_switch_the_gate_off_is_refused(written: str, sentence: str, refusals: Refusals) -> None:
    gate = f"{{type: row_count_reconciliation, tolerance: {written}}}"
    source = "{type: csv, path: a.csv}"
    sink = "{connection_ref: embedded, table: {schema: a, name: t}}"
    process = f"{{name: a, source: {source}, sink: {sink}, quality: {{gates: [{gate}]}}}}"

    found = refusals(f"kind: dpone.flow.v1\nmetadata: {{id: x}}\nprocesses:\n  - {process}\n")

    assert any(sentence in sentence_found for sentence_found in found)
    assert found[0].startswith("m.yaml:4:")


def load(write: Write, process: dict[str, Any]) -> Process:
    return load_manifest(write(flow_of(process))).select(None)


@pytest.mark.parametrize(
    ("written", "kept"), [("0", "0"), ("-0.0", "0"), ("0.50", "0.5"), ("1e2", "100"), ("0.000000001", "0.000000001")]
)
def test_a_tolerance_is_kept_exactly(written: str, kept: str, write: Write) -> None:
    gate = {"type": "row_count_reconciliation", "tolerance": {"mode": "absolute", "value": "AMOUNT"}}
    text = flow_of(changed("quality.gates", [gate])).replace('"AMOUNT"', written)

    process = load_manifest(write(text)).select(None)

    assert process.quality.gates[0].parameters == {"tolerance": {"mode": "absolute", "value": kept}}


def test_declared_columns_settle_keys_and_counts(refusals: Refusals) -> None:
    process = changed("sink.columns", {"day": "Date", "tail": "Nullable(String)"})
    process["sink"]["options"] = {"physical_design": {"storage": {"clickhouse": {"order_by": ["dya", "tail"]}}}}
    process["quality"] = {"acceptance": {"checks": {"null_counts": ["day", "tial"]}}}

    found = refusals(flow_of(process))

    assert [sentence.split(": ", 1)[1] for sentence in found] == [
        f"processes[0].{STORAGE}.order_by[0]: is not one of sink.columns; did you mean 'day'?",
        f"processes[0].{STORAGE}.order_by[1]: a sorting key cannot be Nullable",
        "processes[0].quality.acceptance.checks.null_counts[1]: is not one of sink.columns; did you mean 'tail'?",
    ]


@pytest.mark.parametrize("kind", ["clickhouse", "postgres"])
def test_a_connected_source_needs_a_connection_and_a_table_or_a_query(kind: str, refusals: Refusals) -> None:
    text = " ".join(refusals(flow_of(changed("source", {"type": kind}))))

    assert f"source.connection_ref: required for a {kind} source" in text
    assert "source.table: required: table or query" in text


def test_table_and_query_exclude_each_other(refusals: Refusals) -> None:
    source = {"type": "sqlite", "path": "a.db", "table": {"name": "a"}, "query": "SELECT 1"}

    assert "table and query exclude each other" in refusals(flow_of(changed("source", source)))[0]


def test_the_smallest_process_is_complete(write: Write) -> None:
    process = load(write, PROCESS)

    assert process.source.options == default_options(SourceType.CSV)
    assert process.source.path == "a.csv"
    assert process.source.resolved_path == str(write("").parent / "a.csv")
    assert (process.sink.engine, process.sink.order_by, process.sink.durable) == ("MergeTree", (), False)
    assert not process.quality.acceptance.enabled


def test_the_sinks_table_is_called_like_the_sources(write: Write) -> None:
    process = changed("sink.table.name", MISSING)
    process["source"] = {"type": "sqlite", "path": "a.db", "table": {"name": "records"}}

    assert load(write, process).sink.table == "records"


@pytest.mark.parametrize("name", ["a.b", "__dpone_x"])
def test_a_source_tables_name_that_no_target_can_have_is_not_taken(name: str, refusals: Refusals) -> None:
    process = changed("sink.table.name", MISSING)
    process["source"] = {"type": "sqlite", "path": "a.db", "table": {"name": name}}

    assert "sink.table.name" in refusals(flow_of(process))[0]


def test_types_are_kept_by_their_canonical_names(write: Write) -> None:
    process = load(write, changed("sink.columns", {"no": "Nullable( UInt8 )", "t": "DateTime64(3,'UTC')"}))

    assert process.sink.columns is not None
    assert [column.type for column in process.sink.columns] == ["Nullable(UInt8)", "DateTime64(3, 'UTC')"]


def test_an_incremental_mode_is_unsupported_and_not_a_typo(write: Write) -> None:
    with pytest.raises(DponeError, match="only full_refresh is") as caught:
        load(write, changed("sink.strategy.mode", "incremental_append"))

    assert caught.value.code == "DPONE_REPLAY_QUALITY_EVIDENCE_UNSUPPORTED"
    assert caught.value.exit_code == 2


def test_no_refusal_repeats_a_value(refusals: Refusals) -> None:
    canary = "hunter2canary"
    process = changed("sink.options", {"lineage": canary, "physical_design": canary})
    process["source"] = {"type": canary, "path": canary + "\x00", "options": canary}
    process["quality"] = {"gates": [{"type": canary, "rows": canary}], "acceptance": {"mode": canary}}
    process["sink"]["columns"] = {"a": canary}

    found = refusals(flow_of(process))

    assert len(found) >= 7
    assert canary not in " ".join(found)
