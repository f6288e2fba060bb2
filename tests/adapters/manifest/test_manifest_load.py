"""Whole manifests: inheritance, selectors, fragments, dependencies, credentials, files that are none."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.manifest import Manifest, load_manifest
from dpone.domain.configuration import Process, SourceTable, semantic, semantic_digest
from dpone.domain.errors import DponeError

from .conftest import PROCESS, Refusals, Write, as_yaml, flow_of

EXAMPLES = Path(__file__).parents[3] / "examples"

BATCH = """\
kind: dpone.batch.v1
defaults:
  name: nightly
  source: {type: clickhouse, connection_ref: src, options: {extra_columns: ignore}}
  sink:
    connection_ref: embedded
    table: {schema: analytics}
    columns: {id: UInt64, name: String}
    options:
      durable_quality_replay: true
      physical_design: {storage: {clickhouse: {order_by: [id], partition_by: id}}}
quality:
  gates: [{type: min_rows, rows: 1}, {type: typed_hash_reconciliation}]
schemas:
  raw:
    tables:
      - users
      - name: orders
        depends_on: [raw.users]
        sink:
          table: {name: all_orders}
          columns: {order_id: UInt64}
          options: {physical_design: {storage: {clickhouse: {order_by: [order_id]}}}}
        quality: {gates: [{type: min_rows, rows: 5}]}
"""


def named(name: str, **more: Any) -> dict[str, Any]:
    process = copy.deepcopy(PROCESS)
    process["sink"]["table"]["name"] = f"t_{name}"
    return {**process, "name": name, **more}


def failure(path: Path) -> DponeError:
    with pytest.raises(DponeError) as caught:
        load_manifest(path)
    return caught.value


# ------------------------------------------------------------------------------------------------------------- batches


def test_defaults_are_inherited_field_by_field_and_lists_are_replaced(write: Write) -> None:
    manifest = load_manifest(write(BATCH))
    users, orders = manifest.processes

    assert [users.selector, orders.selector] == ["raw.users", "raw.orders"]
    assert users.name == orders.name == "nightly"
    assert (users.sink.table, orders.sink.table) == ("users", "all_orders")
    assert users.source.table == SourceTable("users", "raw")
    assert orders.source.table == SourceTable("orders", "raw")
    assert orders.source.options["extra_columns"] == "ignore"
    assert orders.sink.durable
    assert orders.sink.database == "analytics"
    assert (users.sink.order_by, orders.sink.order_by) == (("id",), ("order_id",))
    assert orders.sink.partition_by == "id"
    assert [gate.id for gate in users.quality.gates] == ["min_rows", "typed_hash_reconciliation"]
    assert [gate.parameters for gate in orders.quality.gates] == [{"rows": 5}]


def test_declared_columns_are_replaced_and_not_mixed(write: Write) -> None:
    orders = load_manifest(write(BATCH)).select("raw.orders")

    assert orders.sink.columns is not None
    assert [column.name for column in orders.sink.columns] == ["order_id"]


def test_a_batch_of_files_uses_its_schemas_and_tables_only_as_labels(write: Write) -> None:
    text = BATCH.replace("type: clickhouse, connection_ref: src", "type: csv, path: data/a.csv")

    users = load_manifest(write(text)).select("raw.users")

    assert (users.source.table, users.source.path, users.sink.table) == (None, "data/a.csv", "users")


def test_a_mistake_in_the_defaults_is_told_once_at_its_own_place(refusals: Refusals) -> None:
    found = refusals(BATCH.replace("durable_quality_replay: true", "durable_quality_replay: 1"))

    assert found == ("m.yaml:10:7: sink.options.durable_quality_replay: must be true or false, not a whole number",)


def test_a_mistake_in_an_override_is_told_at_the_override(refusals: Refusals) -> None:
    found = refusals(BATCH.replace("order_by: [order_id]", "order_by: [order]"))

    assert len(found) == 1
    assert found[0].startswith("m.yaml:23:73: ")
    assert "order_by[0]: is not one of sink.columns; did you mean 'order_id'?" in found[0]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("  name: nightly\n", "", "m.yaml:2:1: name: required"),
        ("- users", "- us.ers", "schemas.raw.tables[0]: must be a name"),
        ("- users", "- 5", "schemas.raw.tables[0]: must be a name"),
        ("- users", "- {sink: {}}", "schemas.raw.tables[0]: required: name"),
        ("- users", "- orders", "raw.orders stands here a second time; first at m.yaml:17:9"),
        ("{name: all_orders}", "{name: users}", "analytics.users is also the target of the process at m.yaml:17:9"),
        ("- name: orders", "- name: orders\n        snk: {}", "snk: unknown field; did you mean 'sink'?"),
        ("    tables:", "    tabels:", "schemas.raw.tabels: unknown field"),
        ("[raw.users]", "[raw.user]", "did you mean 'raw.users'?"),
        ("connection_ref: src,", "connection_ref: src, table: {name: a},", "in a batch, schemas name the tables"),
        ("quality:\n  gates", "quality:\n  gats", "quality.gats: unknown field; did you mean 'gates'?"),
    ],
)
def test_a_batchs_own_mistakes(old: str, new: str, sentence: str, refusals: Refusals) -> None:
    assert BATCH.count(old) >= 1

    found = refusals(BATCH.replace(old, new, 1))

    assert any(sentence in line for line in found), found


# --------------------------------------------------------------------------------------------------- selecting, order


def test_one_process_needs_no_selector(write: Write) -> None:
    assert load_manifest(write(flow_of(PROCESS))).select(None).name == "refresh"


def test_with_several_a_missing_selector_lists_them(write: Write) -> None:
    with pytest.raises(DponeError, match=r"choose one: raw\.users, raw\.orders") as caught:
        load_manifest(write(BATCH)).select(None)

    assert caught.value.code == "DPONE_MANIFEST_SELECTOR_REQUIRED"
    assert "--selector raw.users" in str(caught.value.next)


@pytest.mark.parametrize("selector", ["raw.user", "nightly", "", "raw.*"])
def test_an_unknown_selector_is_refused(selector: str, write: Write) -> None:
    with pytest.raises(DponeError, match=r"raw\.users, raw\.orders") as caught:
        load_manifest(write(BATCH)).select(selector)

    assert caught.value.code == "DPONE_MANIFEST_SELECTOR_UNKNOWN"


def test_dependencies_order_the_processes(write: Write) -> None:
    a, b, c = named("a", depends_on=["c"]), named("b"), named("c", depends_on=["b"])

    ordered = load_manifest(write(flow_of(a, b, c))).in_dependency_order()

    assert [process.name for process in ordered] == ["b", "c", "a"]


def test_a_circle_is_told_in_order(refusals: Refusals) -> None:
    a, b = named("a", depends_on=["b"]), named("b", depends_on=["a"])

    found = refusals(flow_of(a, b))

    assert len(found) == 1
    assert "wait for each other: a → b → a" in found[0] or "wait for each other: b → a → b" in found[0]


def test_one_target_or_one_name_twice_is_refused(refusals: Refusals) -> None:
    twin = {**named("b"), "sink": named("a")["sink"]}

    assert "analytics.t_a is also the target" in refusals(flow_of(named("a"), twin))[0]
    assert "a stands here a second time" in refusals(flow_of(named("a"), {**named("b"), "name": "a"}))[0]


# ----------------------------------------------------------------------------------------------------------- fragments


def folder_flow(*fragments: str) -> str:
    kind = {"kind": "dpone.flow.v1", "metadata": {"id": "x"}}
    return as_yaml({**kind, "authoring": {"mode": "folder"}, "fragments": fragments})


def fragment_of(*processes: dict[str, Any]) -> str:
    return as_yaml({"kind": "dpone.flow-fragment.v1", "processes": processes})


def test_fragments_make_one_flow_and_its_digest(write: Write) -> None:
    write(fragment_of(named("a")), "parts/a.yaml")
    write(fragment_of(named("b", depends_on=["a"])), "parts/b.yaml")
    manifest = load_manifest(write(folder_flow("parts/a.yaml", "parts/b.yaml")))

    assert [process.name for process in manifest.processes] == ["a", "b"]
    assert manifest.processes[0].source.resolved_path == str(manifest.path.parent / "a.csv")

    write(fragment_of(named("b")), "parts/b.yaml")
    assert load_manifest(manifest.path).sha256 != manifest.sha256


def test_a_fragments_mistake_is_told_in_the_fragment(write: Write) -> None:
    write(fragment_of({**PROCESS, "name": 1}), "parts/a.yaml")

    assert failure(write(folder_flow("parts/a.yaml"))).errors[0].startswith("parts/a.yaml:1:")


@pytest.mark.parametrize("written", ["../a.yaml", "out/a.yaml", "parts/../../a.yaml"])
def test_no_fragment_lies_outside_the_folder(written: str, tmp_path: Path, write: Write) -> None:
    (tmp_path / "a.yaml").write_text(fragment_of(PROCESS))
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow" / "out").symlink_to(tmp_path)

    assert "inside the flow's folder" in failure(write(folder_flow(written), "flow/m.yaml")).errors[0]


def test_an_absolute_fragment_is_refused(tmp_path: Path, write: Write) -> None:
    write(fragment_of(PROCESS), "a.yaml")

    assert "must be a relative path" in failure(write(folder_flow(str(tmp_path / "a.yaml")))).errors[0]


def test_fragments_are_bounded_in_number_and_together(write: Write) -> None:
    assert "at most 64" in failure(write(folder_flow(*(f"{i}.yaml" for i in range(65))))).errors[0]

    padding = "#" + "x" * 600_000 + "\n"
    write(padding + fragment_of(named("a")), "a.yaml")
    write(padding + fragment_of(named("b")), "b.yaml")
    assert "longer than 1048576 bytes together" in failure(write(folder_flow("a.yaml", "b.yaml"))).errors[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (fragment_of(PROCESS), "is read only by the flow that lists it"),
        ("kind: dpone.flow.v2\n", "did you mean 'dpone.flow.v1'?"),
        ("[]\n", "kind: must be one of dpone.batch.v1, dpone.flow.v1, dpone.flow-fragment.v1"),
        ("kind: [dpone.flow.v1]\n", "kind: must be one of"),
        ("kind: dpone.flow.v1\nmetadata: {id: x}\n", "processes: required"),
        ("kind: dpone.flow.v1\nmetadata: {id: x}\nprocesses: []\n", "processes: required"),
        ("kind: dpone.flow.v1\nmetadata: {id: x}\nprocesses: {a: 1}\n", "processes: must be a list"),
        ("kind: dpone.flow.v1\nmetadata: {id: x}\nauthoring: {mode: folder}\n", "fragments: required with authoring"),
        ("kind: dpone.flow.v1\nmetadata: {id: x}\nfragments: [a.yaml]\n", "fragments: needs authoring"),
        ("kind: dpone.flow.v1\nprocesses: []\n", "metadata: required"),
    ],
)
def test_a_flows_own_mistakes(text: str, sentence: str, refusals: Refusals) -> None:
    assert any(sentence in line for line in refusals(text))


def test_a_flow_without_any_process_is_refused(write: Write) -> None:
    write(fragment_of(), "a.yaml")

    assert "holds no process" in failure(write(folder_flow("a.yaml"))).errors[0]


# --------------------------------------------------------------------------------------------------------- credentials


@pytest.mark.parametrize(
    "line",
    [
        "# postgres://me:hunter2@db/x",
        "password: hunter2",
        "db_password: hunter2",
        "API-KEY: hunter2",
        "secret: {a: hunter2}",
        "x: 'host=db password=hunter2'",
        "x: clickhouse://:hunter2@db",
        "x: |\n  -----BEGIN RSA PRIVATE KEY-----\n  hunter2",
    ],
)
def test_what_looks_like_a_credential_is_refused_and_not_repeated(line: str, refusals: Refusals) -> None:
    found = refusals(f"kind: dpone.flow.v1\n{line}\n")

    assert "looks like a credential" in found[0]
    assert "hunter2" not in " ".join(found)


def test_a_column_may_be_called_like_a_credential(write: Write) -> None:
    process = copy.deepcopy(PROCESS)
    process["sink"]["columns"] = {"password": "String", "token": "String"}

    assert load_manifest(write(flow_of(process))).processes


# ------------------------------------------------------------------------------------------------- files that are none


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert "no such file" in failure(tmp_path / "none.yaml").what
    assert "folder" in failure(tmp_path).what
    assert "not a plain file" in failure(tmp_path / "pipe").what
    assert str(tmp_path) not in failure(tmp_path / "none.yaml").what


def test_bytes_that_are_not_utf8_and_too_many_bytes_are_refused(write: Write) -> None:
    assert "m.yaml:2: the file is not UTF-8 from byte 6" in failure(write(b"a: 1\n\xff")).what
    assert "longer than 1048576 bytes" in failure(write(b"#" * 1_048_577)).what


def test_a_byte_order_mark_is_no_character(write: Write) -> None:
    assert load_manifest(write(b"\xef\xbb\xbf" + flow_of(PROCESS).encode())).processes


# ------------------------------------------------------------------------------------------------------------ examples


def example(name: str) -> Manifest:
    return load_manifest(EXAMPLES / name)


def test_the_two_spellings_of_the_replay_example_are_one_configuration() -> None:
    batch = example("batch/durable-replay-full-refresh.batch.yaml").select("source.records")
    flow = example("flow/durable-replay-full-refresh.flow.yaml").select("refresh")

    assert semantic_digest(semantic(batch)) == semantic_digest(semantic(flow))
    assert batch.sink.max_source_bytes == 104_857_600
    assert batch.sink.cluster is not None
    assert (batch.sink.engine, batch.sink.table) == ("ReplicatedMergeTree", "replay_records")


def test_the_flights_example_declares_the_data_as_it_is() -> None:
    flights: Process = example("batch/flights.batch.yaml").select("nyc.flights")

    assert flights.sink.columns is not None
    assert len(flights.sink.columns) == 19
    assert flights.sink.order_by == ("year", "month", "day")
    assert flights.source.options["null_values"] == ("NA",)
    assert flights.sink.durable
    assert flights.source.resolved_path is not None
    assert Path(flights.source.resolved_path).resolve() == EXAMPLES.parent.resolve() / ".demo" / "flights.csv.zip"


# ------------------------------------------------------------------------------------------------------------- imports


def test_loading_imports_no_engine() -> None:
    program = """
import sys
from pathlib import Path
from dpone.adapters.manifest import load_manifest
load_manifest(Path(sys.argv[1]))
print(*({"chdb", "pyarrow", "rich", "eventsourcing", "click"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", program, str(EXAMPLES / "batch/flights.batch.yaml")]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True, env=plain)
    assert done.stdout.split() == []


def test_unknown_words_in_great_number_cost_little(write: Write) -> None:
    text = "kind: dpone.flow.v1\n" + "".join(f"processs{i}: 1\n" for i in range(40_000))

    assert len(failure(write(text)).errors) <= 100


def test_too_many_processes_are_counted_before_any_is_looked_at(refusals: Refusals) -> None:
    found = refusals(f"kind: dpone.flow.v1\nmetadata: {{id: x}}\nprocesses: [{'1,' * 5_001}]\n")

    assert found == ("m.yaml:3:1: processes: must be a list of at most 5000",)
