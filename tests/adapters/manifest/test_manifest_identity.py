"""What counts for an operation's identity: spelling never does, what is read, written or checked always does."""

from __future__ import annotations

import copy
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.adapters.manifest import load_manifest
from dpone.domain.configuration import SourceType, default_options, differences, semantic, semantic_digest

from .conftest import as_yaml

PROCESS: dict[str, Any] = {
    "name": "refresh",
    "source": {"type": "csv", "path": "a.csv", "options": {"null_values": ["", "NA"]}},
    "sink": {
        "connection_ref": "embedded",
        "table": {"schema": "analytics", "name": "t"},
        "columns": {"id": "UInt64", "day": "Date", "tail": "Nullable(String)"},
        "options": {
            "durable_quality_replay": True,
            "physical_design": {"storage": {"clickhouse": {"order_by": ["id", "day"]}}},
        },
    },
    "quality": {
        "gates": [{"type": "row_count_reconciliation"}, {"id": "some", "type": "min_rows", "rows": 5}],
        "acceptance": {"checks": {"null_counts": ["tail"], "distinct_counts": ["id"]}},
    },
}

STORAGE = ("sink", "options", "physical_design", "storage", "clickhouse")
ACCEPTANCE = ("quality", "acceptance")
GATES = ("quality", "gates")

WRITTEN_OUT: list[tuple[tuple[str | int, ...], Any]] = [
    *((("source", "options", name), value) for name, value in default_options(SourceType.CSV).items()),
    (("sink", "type"), "clickhouse"),
    (("sink", "staging"), {"schema": "analytics"}),
    (("sink", "schema_change"), "refuse"),
    (("sink", "strategy", "mode"), "full_refresh"),
    (("sink", "options", "lineage"), False),
    ((*STORAGE, "engine"), "MergeTree"),
    ((*GATES, 0, "id"), "row_count_reconciliation"),
    ((*GATES, 0, "severity"), "error"),
    ((*GATES, 0, "tolerance"), {"mode": "absolute", "value": Decimal("0.00")}),
    ((*ACCEPTANCE, "enabled"), True),
    ((*ACCEPTANCE, "mode"), "required"),
    ((*ACCEPTANCE, "capture"), {"source": True, "target": True}),
    ((*ACCEPTANCE, "checks", "row_count"), True),
]
NOT_SEMANTIC: list[tuple[tuple[str | int, ...], Any]] = [
    (("sink", "strategy", "max_source_bytes"), 12345),
    (("sink", "strategy", "keep_generations"), 3),
    (("depends_on",), ["other"]),
]
SEMANTIC: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("name",), "b", "name"),
    (("source", "path"), "b.csv", "source.path"),
    (("source", "options", "null_values"), ["NA", ""], "source.options"),
    (("source", "options", "delimiter"), ";", "source.options.delimiter"),
    (("source", "options", "quote"), "'", "source.options.quote"),
    (("source", "options", "header"), False, "source.options.header"),
    (("source", "options", "encoding"), "latin-1", "source.options.encoding"),
    (("source", "options", "quoted_null"), True, "source.options.quoted_null"),
    (("source", "options", "decimal_point"), ",", "source.options.decimal_point"),
    (("source", "options", "skip_rows"), 1, "source.options.skip_rows"),
    (("source", "options", "trim"), True, "source.options.trim"),
    (("source", "options", "compression"), "gzip", "source.options.compression"),
    (("source", "options", "extra_columns"), "ignore", "source.options.extra_columns"),
    (("sink", "connection_ref"), "other", "sink.connection_ref"),
    (("sink", "table", "schema"), "b", "sink.database"),
    (("sink", "table", "name"), "b", "sink.table"),
    (("sink", "staging"), {"schema": "s"}, "sink.staging_database"),
    (("sink", "columns", "id"), "UInt32", "sink.columns"),
    (("sink", "columns", "more"), "UInt32", "sink.columns"),
    (("sink", "schema_change"), "add", "sink.schema_change"),
    (("sink", "options", "durable_quality_replay"), False, "sink.durable"),
    (("sink", "options", "lineage"), True, "sink.lineage"),
    ((*STORAGE, "engine"), "ReplicatedMergeTree", "sink.engine"),
    ((*STORAGE, "order_by"), ["day", "id"], "sink.order_by"),
    ((*STORAGE, "partition_by"), "day", "sink.partition_by"),
    ((*STORAGE, "cluster"), {"name": "c"}, "sink.cluster"),
    ((*GATES, 0, "id"), "other", "quality.gates.other"),
    ((*GATES, 0, "severity"), "warning", "quality.gates.row_count_reconciliation.severity"),
    ((*GATES, 0, "tolerance"), {"mode": "absolute", "value": 1}, "quality.gates.row_count_reconciliation"),
    ((*GATES, 0, "tolerance"), {"mode": "percent", "value": 0}, "quality.gates.row_count_reconciliation"),
    ((*GATES, 1, "rows"), 6, "quality.gates.some.parameters.rows"),
    ((*ACCEPTANCE, "enabled"), False, "quality.acceptance"),
    ((*ACCEPTANCE, "mode"), "warn_only", "quality.acceptance.mode"),
    ((*ACCEPTANCE, "capture"), {"source": False}, "quality.acceptance.capture_source"),
    ((*ACCEPTANCE, "capture"), {"staged": False}, "quality.acceptance.capture_staged"),
    ((*ACCEPTANCE, "capture"), {"target": False}, "quality.acceptance.capture_target"),
    ((*ACCEPTANCE, "checks", "row_count"), False, "quality.acceptance.row_count"),
    ((*ACCEPTANCE, "checks", "null_counts"), [], "quality.acceptance.null_counts"),
    ((*ACCEPTANCE, "checks", "distinct_counts"), ["id", "day"], "quality.acceptance.distinct_counts"),
]
OTHER = {**PROCESS, "name": "other", "sink": {**PROCESS["sink"], "table": {"schema": "x", "name": "x"}}}


def with_field(process: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(process)
    here: Any = changed
    for step in path[:-1]:
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    here[path[-1]] = list(value) if isinstance(value, tuple) else value
    return changed


def form(text: str, name: str = "m.yaml") -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        return semantic(load_manifest(path).processes[0])


def written(process: dict[str, Any]) -> str:
    return as_yaml({"kind": "dpone.flow.v1", "metadata": {"id": "x"}, "processes": [process, OTHER]})


def respelled(draw: st.DrawFn, value: Any, indent: str = "", ordered: bool = False) -> str:
    """Block YAML with keys in a drawn order (columns keep theirs), comments and blank lines."""
    if not isinstance(value, dict):
        return " " + as_yaml(value) + draw(st.sampled_from(["", "  # a comment"])) + "\n"
    keys = list(value) if ordered else draw(st.permutations(list(value)))
    text = "\n"
    for key in keys:
        text += draw(st.sampled_from(["", "\n", f"{indent}# a comment: [\n"]))
        spelled = draw(st.sampled_from([key, f'"{key}"']))
        text += f"{indent}{spelled}:{respelled(draw, value[key], indent + '  ', key == 'columns')}"
    return text


@st.composite
def spellings(draw: st.DrawFn) -> str:
    process = PROCESS
    for path, value in draw(st.lists(st.sampled_from(WRITTEN_OUT + NOT_SEMANTIC), max_size=8)):
        if path != ("source", "options", "null_values"):
            process = with_field(process, path, value)
    items = "".join(f"  - {respelled(draw, each, '    ').lstrip()}" for each in (process, OTHER))
    parts = ["kind: dpone.flow.v1\n", "metadata: {id: x}\n", f"processes:\n{items}"]
    return "# first\n" + "".join(draw(st.permutations(parts)))


@settings(max_examples=30, deadline=None)
@given(spellings(), st.sampled_from(["m.yaml", "renamed.flow.yaml", "ü.yml"]))
def test_spelling_never_changes_the_digest(text: str, name: str) -> None:
    assert semantic_digest(form(text, name)) == semantic_digest(form(written(PROCESS)))


@pytest.mark.parametrize(("path", "value"), WRITTEN_OUT + NOT_SEMANTIC, ids=lambda part: str(part))
def test_a_default_written_out_and_what_is_not_semantic_changes_nothing(path: Any, value: Any) -> None:
    plain = copy.deepcopy(PROCESS)
    del plain["source"]["options"]

    assert form(written(with_field(plain, path, value))) == form(written(plain))


@pytest.mark.parametrize(("path", "value", "field"), SEMANTIC, ids=lambda part: str(part))
def test_what_is_read_written_or_checked_changes_the_digest_and_is_named(path: Any, value: Any, field: str) -> None:
    before, after = form(written(PROCESS)), form(written(with_field(PROCESS, path, value)))

    assert semantic_digest(before) != semantic_digest(after)
    assert any(name.startswith(field) for name in differences(before, after))


def test_the_order_of_columns_counts() -> None:
    columns = dict(reversed(PROCESS["sink"]["columns"].items()))

    assert differences(form(written(PROCESS)), form(written(with_field(PROCESS, ("sink", "columns"), columns)))) == (
        "sink.columns",
    )
