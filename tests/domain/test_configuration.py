"""The stored form of a configuration: complete, canonical, and refused when it is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone.domain.configuration import (
    AcceptanceMode,
    AcceptanceSpec,
    ClusterSpec,
    GateSpec,
    GateType,
    Process,
    QualitySpec,
    SchemaChange,
    Severity,
    SinkSpec,
    SourceSpec,
    SourceTable,
    SourceType,
    default_engine,
    default_options,
    differences,
    from_semantic,
    semantic,
    semantic_digest,
)
from dpone.domain.errors import DponeError
from dpone.domain.limits import CONFIGURATION_BYTES_MAX
from dpone.domain.tables import Column

WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
NAMES = st.lists(WORDS, unique=True, max_size=4).map(tuple)
COLUMNS = st.builds(Column, WORDS, st.sampled_from(["UInt8", "String", "Nullable(Date)"]))
GATES = st.one_of(
    st.builds(
        GateSpec,
        WORDS,
        st.just(GateType.MIN_ROWS),
        st.sampled_from(Severity),
        st.fixed_dictionaries({"rows": st.integers(1, 2**53 - 1)}),
    ),
    st.builds(
        GateSpec,
        WORDS,
        st.just(GateType.ROW_COUNT_RECONCILIATION),
        st.sampled_from(Severity),
        st.just({"tolerance": {"mode": "percent", "value": "0.5"}}),
    ),
    st.builds(GateSpec, WORDS, st.just(GateType.TYPED_HASH_RECONCILIATION), st.sampled_from(Severity)),
)


@st.composite
def sources(draw: st.DrawFn) -> SourceSpec:
    kind = draw(st.sampled_from(SourceType))
    options = dict(default_options(kind))
    options["extra_columns"] = draw(st.sampled_from(["refuse", "ignore"]))
    if kind is SourceType.CSV:
        options["null_values"] = draw(NAMES)
        options["skip_rows"] = draw(st.integers(0, 9))
        options["trim"] = draw(st.booleans())
    table = draw(st.none() | st.builds(SourceTable, WORDS, st.none() | WORDS))
    return SourceSpec(kind, draw(st.none() | WORDS), draw(st.none() | WORDS), table, draw(st.none() | WORDS), options)


@st.composite
def sinks(draw: st.DrawFn) -> SinkSpec:
    cluster = draw(st.none() | st.builds(ClusterSpec, WORDS))
    return SinkSpec(
        connection_ref=draw(WORDS),
        database=draw(WORDS),
        table=draw(WORDS),
        columns=draw(st.none() | st.lists(COLUMNS, min_size=1, max_size=3).map(tuple)),
        schema_change=draw(st.sampled_from(SchemaChange)),
        staging_database=draw(st.none() | WORDS),
        durable=draw(st.booleans()),
        lineage=draw(st.booleans()),
        engine=draw(st.sampled_from(["MergeTree", "ReplicatedMergeTree"])),
        order_by=draw(NAMES),
        partition_by=draw(st.none() | WORDS),
        cluster=cluster,
    )


ACCEPTANCES = st.just(AcceptanceSpec()) | st.builds(
    AcceptanceSpec,
    st.just(True),
    st.sampled_from(AcceptanceMode),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    NAMES,
    NAMES,
)
QUALITIES = st.builds(QualitySpec, st.lists(GATES, max_size=3, unique_by=lambda gate: gate.id).map(tuple), ACCEPTANCES)
PROCESSES = st.builds(Process, WORDS, sources(), sinks(), QUALITIES)


def smallest(**sink: Any) -> Process:
    source = SourceSpec(SourceType.CSV, path="a.csv", options=default_options(SourceType.CSV))
    return Process("a", source, SinkSpec("embedded", "d", "t", **sink))


@given(PROCESSES)
def test_a_process_survives_being_stored(process: Process) -> None:
    assert from_semantic(semantic(process)) == process


@given(PROCESSES, PROCESSES)
def test_two_processes_have_one_digest_only_when_they_are_equal(one: Process, other: Process) -> None:
    first, second = semantic(one), semantic(other)

    assert (semantic_digest(first) == semantic_digest(second)) == (one == other)
    assert bool(differences(first, second)) == (one != other)


def test_defaults_are_left_out() -> None:
    assert semantic(smallest()) == {
        "format": 1,
        "name": "a",
        "source": {"type": "csv", "path": "a.csv"},
        "sink": {"connection_ref": "embedded", "database": "d", "table": "t"},
    }


def test_the_engines_default_depends_on_the_cluster() -> None:
    process = smallest(cluster=ClusterSpec("c"), engine=default_engine(ClusterSpec("c")))

    assert semantic(process)["sink"]["cluster"] == {"name": "c"}
    assert from_semantic(semantic(process)).sink.engine == "ReplicatedMergeTree"


def test_the_stored_form_of_version_1_never_changes() -> None:
    digest = semantic_digest(semantic(smallest(order_by=("a", "b"), durable=True)))

    assert digest == "sha256:125e5a29a71935efb255f27deee5a1b331008b5fb543f56ca6186d39bae47487"


def test_differences_name_dotted_fields_and_gates_by_id() -> None:
    gates = (GateSpec("rows", GateType.MIN_ROWS, parameters={"rows": 1}), GateSpec("h", GateType.MIN_ROWS))
    stricter = (GateSpec("rows", GateType.MIN_ROWS, parameters={"rows": 2}),)
    old = Process("a", smallest().source, smallest(order_by=("a",)).sink, QualitySpec(gates))
    new = Process("a", smallest().source, smallest(durable=True).sink, QualitySpec(stricter))

    assert differences(semantic(old), semantic(new)) == (
        "quality.gates.h",
        "quality.gates.rows.parameters.rows",
        "sink.durable",
        "sink.order_by",
    )


@pytest.mark.parametrize(
    "damage",
    [
        {"format": 2},
        {"format": "1"},
        {"unknown": 1},
        {"sink": {}},
        {"sink": {"connection_ref": "embedded", "database": "d", "table": "t", "durable": False}},
        {"source": {"type": "tape"}},
        {"source": 5},
        {"quality": {"gates": [{}]}},
        {"quality": {"acceptance": {"extra": True}}},
    ],
)
def test_a_form_that_is_not_ours_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(DponeError) as caught:
        from_semantic({**semantic(smallest()), **damage})

    assert caught.value.code == "DPONE_REPLAY_QUALITY_EVIDENCE_INVALID"


def test_a_configuration_that_cannot_be_kept_is_refused() -> None:
    query = "x" * CONFIGURATION_BYTES_MAX
    process = Process("a", SourceSpec(SourceType.CLICKHOUSE, query=query), smallest().sink)

    with pytest.raises(DponeError, match="at most 262144 are kept"):
        semantic(process)


FULL = Process(
    "a",
    SourceSpec(
        SourceType.POSTGRES,
        connection_ref="ref",
        table=SourceTable("t", "s"),
        options=default_options(SourceType.POSTGRES),
        resolved_path="/a",
    ),
    SinkSpec("embedded", "d", "t", cluster=ClusterSpec("c"), engine="ReplicatedMergeTree"),
    QualitySpec((GateSpec("g", GateType.MIN_ROWS, parameters={"rows": 1}),), AcceptanceSpec(enabled=True)),
)
NOT_SEMANTIC = {
    "depends_on": ("b",),
    "selector": "s.a",
    "source.resolved_path": "/b",
    "sink.max_source_bytes": 5,
    "sink.keep_generations": 5,
}
"""The whole list, each with another value. Host, user and password behind a reference are no part of a process."""
OTHER_VALUES: dict[str, Any] = {
    "name": "b",
    "source.type": SourceType.CLICKHOUSE,
    "source.connection_ref": "other",
    "source.path": "b",
    "source.table": SourceTable("t", "other"),
    "source.query": "SELECT 1",
    "source.options": {"extra_columns": "ignore"},
    "sink.connection_ref": "other",
    "sink.database": "other",
    "sink.table": "other",
    "sink.columns": (Column("a", "UInt8"),),
    "sink.schema_change": SchemaChange.ADD,
    "sink.staging_database": "s",
    "sink.durable": True,
    "sink.lineage": True,
    "sink.engine": "MergeTree",
    "sink.order_by": ("a",),
    "sink.partition_by": "a",
    "sink.cluster": ClusterSpec("other"),
    "quality.gates": (GateSpec("g", GateType.MIN_ROWS, parameters={"rows": 2}),),
    "quality.acceptance.enabled": False,
    "quality.acceptance.mode": AcceptanceMode.WARN_ONLY,
    "quality.acceptance.capture_source": False,
    "quality.acceptance.capture_staged": False,
    "quality.acceptance.capture_target": False,
    "quality.acceptance.row_count": False,
    "quality.acceptance.null_counts": ("a",),
    "quality.acceptance.distinct_counts": ("a",),
}


def every_field(value: Any, within: str = "") -> Iterator[str]:
    """The dotted names of a process's fields, as deep as they are ours."""
    for field in fields(value):
        inner, name = getattr(value, field.name), f"{within}{field.name}"
        if isinstance(inner, SourceSpec | SinkSpec | QualitySpec | AcceptanceSpec):
            yield from every_field(inner, f"{name}.")
        else:
            yield name


def changed(value: Any, name: str, new: Any) -> Any:
    first, _, rest = name.partition(".")
    return replace(value, **{first: changed(getattr(value, first), rest, new) if rest else new})


def test_every_field_either_counts_or_is_listed_as_not_counting() -> None:
    assert {*every_field(FULL)} == NOT_SEMANTIC.keys() | OTHER_VALUES.keys()


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_a_field_that_counts_changes_the_digest_and_is_named(name: str) -> None:
    old, new = semantic(FULL), semantic(changed(FULL, name, OTHER_VALUES[name]))

    assert semantic_digest(old) != semantic_digest(new)
    assert [found for found in differences(old, new) if found.startswith(name.removesuffix(".enabled"))]


@pytest.mark.parametrize("name", NOT_SEMANTIC)
def test_a_field_that_does_not_count_changes_nothing(name: str) -> None:
    assert semantic(changed(FULL, name, NOT_SEMANTIC[name])) == semantic(FULL)
