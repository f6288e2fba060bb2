"""Arrow IPC files and streams: the file's own types, exact conversions, row numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone.adapters.sources import SourceRequest, open_source
from dpone.adapters.sources.arrow import ArrowSource
from dpone.domain.errors import ErrorCode, SourceFailed
from dpone.domain.tables import Column, Metrics

from .conftest import Loader, disturb

FORMATS = ("file", "stream", "feather", "feather-lz4")


def write(folder: Path, table: Any, form: str = "file", rows: int = 100_000, name: str = "x") -> Path:
    path = folder / name
    if form.startswith("feather"):
        pyarrow.feather.write_feather(
            table, path, compression="lz4" if form == "feather-lz4" else "uncompressed", chunksize=rows
        )
        return path
    opened = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with opened(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


@pytest.mark.parametrize("form", FORMATS)
def test_types_come_from_the_file(tmp_path: Path, load: Loader, form: str) -> None:
    schema = pa.schema(
        [
            pa.field("i", pa.int16(), nullable=False),
            pa.field("u", pa.uint64()),
            pa.field("b", pa.bool_()),
            pa.field("s", pa.large_string()),
            pa.field("y", pa.binary()),
            pa.field("d", pa.date32()),
            pa.field("t", pa.timestamp("us", "Europe/Berlin")),
            pa.field("n", pa.decimal128(10, 2)),
            pa.field("e", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    moment = datetime(2020, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    row = (-1, 2**64 - 1, True, "é", b"\xff\0", date(1950, 1, 1), moment, Decimal("1.50"), "a")
    arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
    source = open_source(SourceRequest("arrow", write(tmp_path, pa.Table.from_arrays(arrays, schema=schema), form)))
    assert [column.type for column in source.describe()] == [
        "Int16",
        "Nullable(UInt64)",
        "Nullable(Bool)",
        "Nullable(String)",
        "Nullable(String)",
        "Nullable(Date32)",
        "Nullable(DateTime64(6, 'UTC'))",
        "Nullable(Decimal(10, 2))",
        "Nullable(String)",
    ]
    assert load(source).rows == [row]


INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from((-(2**63), 2**63 - 1))


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.tuples(st.none() | INTEGERS, st.none() | st.binary(), st.none() | st.text()), min_size=1))
def test_every_value_arrives_as_it_is(tmp_path: Path, load: Loader, form: str, values: list[Any]) -> None:
    kinds = (pa.int64(), pa.binary(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), kinds, strict=True)]
    path = write(tmp_path, pa.table(arrays, names=["i", "y", "s"]), form, rows=3)
    assert load(ArrowSource(path)).rows == values


@pytest.mark.parametrize("form", FORMATS)
def test_a_value_that_does_not_fit_is_named_by_its_row(tmp_path: Path, load: Loader, form: str) -> None:
    values = list(range(200)) * 500
    values[50_000] = 256
    path = write(tmp_path, pa.table({"a": pa.array(values, pa.int64())}), form, rows=7_000)
    with pytest.raises(SourceFailed, match="row 50001, column") as failed:
        load(ArrowSource(path, (Column("a", "UInt8"),)))
    assert failed.value.code is ErrorCode.VALUE_REFUSED
    assert "256" not in failed.value.what


def test_columns_are_one_set_in_the_declared_order(tmp_path: Path, load: Loader) -> None:
    path = write(tmp_path, pa.table({"a": [1], "b": ["x"]}))
    assert load(ArrowSource(path, (Column("b", "String"), Column("a", "UInt8")))).rows == [("x", 1)]
    with pytest.raises(SourceFailed, match="not declared"):
        ArrowSource(path, (Column("a", "UInt8"),)).describe()
    assert load(ArrowSource(path, (Column("a", "UInt8"),), "ignore")).rows == [(1,)]
    twice = write(tmp_path, pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), name="twice")
    with pytest.raises(SourceFailed, match="twice"):
        ArrowSource(twice, (Column("a", "UInt8"),)).describe()


@pytest.mark.parametrize("form", ["file", "stream"])
def test_zero_rows_are_a_result(tmp_path: Path, load: Loader, form: str) -> None:
    path = write(tmp_path, pa.table({"a": pa.array([], pa.int8())}), form)
    loaded = load(ArrowSource(path), metrics=Metrics(("a",), ("a",), typed_hash=True))
    assert loaded.observation.row_count == 0
    assert loaded.fingerprint["name"] == "x"


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files(tmp_path: Path, load: Loader, form: str) -> None:
    path = write(tmp_path, pa.table({"a": pa.array(range(50_000), pa.int64()), "s": ["x"] * 50_000}), form)
    whole = path.read_bytes()
    for number, data in enumerate((whole[: len(whole) // 2], whole[:20], b"a,b\n1,2\n" * 10, whole[:8] + b"\xff" * 90)):
        (tmp_path / "cut").write_bytes(data)
        with pytest.raises(SourceFailed) as failed:
            load(ArrowSource(tmp_path / "cut"))
        assert failed.value.code is ErrorCode.SOURCE_UNREADABLE, number


def test_offsets_that_lead_out_of_the_buffer(tmp_path: Path, load: Loader) -> None:
    path = write(tmp_path, pa.table({"s": ["abcd", "efgh"]}), "stream")
    data = path.read_bytes()
    place = data.index(b"\0\0\0\0\4\0\0\0\x08\0\0\0")
    path.write_bytes(data[: place + 8] + b"\xff\xff\0\0" + data[place + 12 :])
    with pytest.raises(SourceFailed) as failed:
        load(ArrowSource(path))
    assert failed.value.code is ErrorCode.SOURCE_UNREADABLE


def test_unpacked_bytes_are_bounded(tmp_path: Path, load: Loader) -> None:
    table = pa.table({"a": pa.array([0] * 1_000_000, pa.int64())})
    path = write(tmp_path, table, "feather-lz4")
    source = ArrowSource(path, max_bytes=path.stat().st_size + 1_000_000)
    with pytest.raises(SourceFailed) as failed:
        load(source)
    assert failed.value.code is ErrorCode.SOURCE_TOO_LARGE


def test_nested_types_name_their_column(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match='Column "l" of'):
        ArrowSource(write(tmp_path, pa.table({"l": [[1]]}))).describe()


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"a": pa.array(range(300_000), pa.int64())}), rows=10_000)
    source = ArrowSource(path)
    columns = source.describe()
    write(tmp_path, pa.table({"a": [1]}), name="new")
    with pytest.raises(SourceFailed) as failed:
        disturb(source, columns, lambda: (tmp_path / "new").replace(path))
    assert failed.value.code is ErrorCode.SOURCE_CHANGED
