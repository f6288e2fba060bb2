"""Counts and typed hash against the definition, written out one row at a time."""

from __future__ import annotations

import hashlib
import math
import struct
import tracemalloc
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.adapters.sources import distinct
from dpone.adapters.sources.distinct import Distinct
from dpone.adapters.sources.observing import Observer
from dpone.adapters.sources.shapes import arrow_type
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.tables import Column, Metrics
from dpone.domain.typed_hash import tag
from dpone.domain.types import ColumnType, parse_type

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Int16": st.integers(-(2**15), 2**15 - 1),
    "UInt64": st.integers(0, 2**64 - 1),
    "Float32": st.floats(width=32) | st.just(-0.0),
    "Float64": st.floats() | st.just(-0.0),
    "Bool": st.booleans(),
    "String": st.text(max_size=5),
    "Date32": st.dates(date(1900, 1, 1), date(2299, 12, 31)),
    "DateTime": st.datetimes(datetime(1970, 1, 1), datetime(2106, 1, 1)).map(lambda d: d.replace(microsecond=0)),
    "DateTime64(1)": st.datetimes(datetime(1900, 1, 1), datetime(2299, 1, 1)).map(lambda d: d.replace(microsecond=0)),
    "Decimal(12, 3)": st.decimals(-(10**8), 10**8, places=3),
    "UUID": st.uuids().map(str),
}


def text_of(value: Any, kind: ColumnType) -> bytes:
    """One value's text as the definition of the typed hash says."""
    if kind.kind == "Bool":
        return b"1" if value else b"0"
    if kind.kind in ("DateTime", "DateTime64"):
        seconds = int((value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        return str(seconds * 10**kind.precision).encode()
    if kind.kind == "Decimal":
        unscaled, exponent = int(value * 10**kind.scale), -kind.scale
        while unscaled and unscaled % 10 == 0:
            unscaled, exponent = unscaled // 10, exponent + 1
        return f"{unscaled}e{exponent if unscaled else 0}".encode()
    if kind.kind in ("Float32", "Float64"):
        form, nan = ("<f", 0x7FC00000) if kind.kind == "Float32" else ("<d", 0x7FF8000000000000)
        bits = nan if math.isnan(value) else int.from_bytes(struct.pack(form, value + 0.0), "little")
        return str(bits).encode()
    return str(value).encode()


def expected_hash(rows: list[tuple[Any, ...]], kinds: list[ColumnType]) -> str:
    total = 0
    for row in rows:
        cells = b""
        for value, kind in zip(row, kinds, strict=True):
            text = b"" if value is None else text_of(value, kind)
            cells += b"N;" if value is None else f"{tag(kind)}{len(text)}:".encode() + text
        total += int.from_bytes(hashlib.md5(cells).digest()[:8], "big")
    return f"v1:{len(rows)}:{total % 2**64}"


@settings(max_examples=120, deadline=None)
@given(st.data(), st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
def test_hash_and_counts(data: st.DataObject, names: list[str]) -> None:
    row = st.tuples(*(st.none() | VALUES[name] for name in names))
    rows = data.draw(st.lists(row, max_size=12))
    rows += rows[: data.draw(st.integers(0, 40))] * data.draw(st.integers(0, 4))
    kinds = [parse_type(name) for name in names]
    columns = [Column(f"c{place}", f"Nullable({name})") for place, name in enumerate(names)]
    arrays = [pa.array([row[place] for row in rows], arrow_type(kind)) for place, kind in enumerate(kinds)]
    batch = pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])
    every = tuple(column.name for column in columns)
    observer = Observer(columns, Metrics(every, every, typed_hash=True))
    cut = data.draw(st.integers(0, len(rows)))
    for part in (batch.slice(0, cut), batch.slice(cut)):
        observer.add(part)
    found = observer.result()
    assert found.row_count == len(rows)
    assert found.typed_hash == expected_hash(rows, kinds)
    for place, name in enumerate(every):
        values = [row[place] for row in rows if row[place] is not None]
        assert found.null_counts[name] == len(rows) - len(values)
        assert found.distinct_counts[name] == len({text_of(value, kinds[place]) for value in values})


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(VALUES)), st.integers(1, 9))
def test_distinct_counts_do_not_depend_on_when_values_are_merged(data: st.DataObject, name: str, least: int) -> None:
    kind = parse_type(name)
    batches = data.draw(st.lists(st.lists(st.none() | VALUES[name], max_size=8), max_size=8))
    order = data.draw(st.sampled_from(["as drawn", "rising", "the same again"]))
    if order == "rising" and name == "UInt64":
        batches = [list(range(10 * place, 10 * place + 10)) for place in range(len(batches))]
    if order == "the same again":
        batches += batches
    counter = Distinct("a", 1_000)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(distinct, "_MERGE_VALUES_MIN", least)
        for batch in batches:
            counter.add(pa.array(batch, arrow_type(kind)))
    present = {text_of(value, kind) for batch in batches for value in batch if value is not None}
    assert counter.count() == len(present)
    assert counter.count() == len(present)


def test_only_what_is_asked_for_is_counted() -> None:
    observer = Observer([Column("a", "UInt8")], Metrics())
    observer.add(pa.RecordBatch.from_arrays([pa.array([1, 2], pa.uint8())], ["a"]))
    found = observer.result()
    assert (found.row_count, found.null_counts, found.distinct_counts, found.typed_hash) == (2, {}, {}, None)


def test_distinct_counts_have_a_limit_that_is_named() -> None:
    observer = Observer([Column("a", "UInt32")], Metrics((), ("a",)), distinct_max=1_000)
    observer.add(pa.RecordBatch.from_arrays([pa.array(range(1_000), pa.uint32())], ["a"]))
    assert observer.result().distinct_counts == {"a": 1_000}
    observer.add(pa.RecordBatch.from_arrays([pa.array([5_000], pa.uint32())], ["a"]))
    with pytest.raises(DponeError, match="1,000") as failed:
        observer.result()
    assert failed.value.code is ErrorCode.EVIDENCE_UNSUPPORTED


def test_memory_is_flat_while_distinct_values_are_few() -> None:
    observer = Observer([Column("a", "String")], Metrics((), ("a",)))
    batch = pa.RecordBatch.from_arrays([pa.array([f"v{n % 1_000}" for n in range(20_000)])], ["a"])
    observer.add(batch)
    held: list[int] = []
    tracemalloc.start()
    for _ in range(2):
        for _ in range(600):
            observer.add(batch)
        observer.result()
        held.append(pa.total_allocated_bytes())
    tracemalloc.stop()
    assert held[1] <= held[0] * 1.05
    assert observer.result().distinct_counts == {"a": 1_000}
