"""Parquet files: the file's own types, exact conversions, row numbers."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpone.adapters.sources import SourceRequest, open_source
from dpone.adapters.sources.parquet import ParquetSource
from dpone.domain.errors import ErrorCode, SourceFailed
from dpone.domain.tables import Column, Metrics

from .conftest import Loader, disturb


def write(folder: Path, table: pa.Table, name: str = "x.parquet", rows: int = 1_000_000) -> Path:
    pq.write_table(table, folder / name, row_group_size=rows)
    return folder / name


def test_types_come_from_the_file(tmp_path: Path, load: Loader) -> None:
    schema = pa.schema(
        [
            pa.field("i", pa.int16(), nullable=False),
            pa.field("u", pa.uint64()),
            pa.field("f", pa.float32()),
            pa.field("b", pa.bool_()),
            pa.field("s", pa.large_string()),
            pa.field("y", pa.binary(2)),
            pa.field("d", pa.date32()),
            pa.field("t", pa.timestamp("us", "Europe/Berlin")),
            pa.field("n", pa.decimal128(10, 2)),
        ]
    )
    moment = datetime(2020, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    row = (-1, 2**64 - 1, 0.5, True, "é", b"\xff\0", date(1950, 1, 1), moment, Decimal("1.50"))
    arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
    source = ParquetSource(write(tmp_path, pa.Table.from_arrays(arrays, schema=schema)))
    assert [column.type for column in source.describe()] == [
        "Int16",
        "Nullable(UInt64)",
        "Nullable(Float32)",
        "Nullable(Bool)",
        "Nullable(String)",
        "Nullable(String)",
        "Nullable(Date32)",
        "Nullable(DateTime64(6, 'UTC'))",
        "Nullable(Decimal(10, 2))",
    ]
    assert load(source).rows == [row]


def test_a_value_that_does_not_fit_is_named_by_its_row(tmp_path: Path, load: Loader) -> None:
    values = list(range(200)) * 1_000
    values[150_000] = 256
    path = write(tmp_path, pa.table({"a": pa.array(values, pa.int64())}), rows=70_000)
    with pytest.raises(SourceFailed, match="row 150001, column") as failed:
        load(ParquetSource(path, (Column("a", "UInt8"),)))
    assert failed.value.code is ErrorCode.VALUE_REFUSED
    assert "256" not in failed.value.what


def test_null_for_a_column_without_null(tmp_path: Path, load: Loader) -> None:
    path = write(tmp_path, pa.table({"a": pa.array([1, None], pa.int64())}))
    with pytest.raises(SourceFailed, match="row 2, column"):
        load(ParquetSource(path, (Column("a", "UInt8"),)))


def test_columns_are_one_set_in_the_declared_order(tmp_path: Path, load: Loader) -> None:
    path = write(tmp_path, pa.table({"a": [1], "b": ["x"]}))
    assert load(ParquetSource(path, (Column("b", "String"), Column("a", "UInt8")))).rows == [("x", 1)]
    with pytest.raises(SourceFailed, match="not declared"):
        ParquetSource(path, (Column("a", "UInt8"),)).describe()
    assert load(ParquetSource(path, (Column("a", "UInt8"),), "ignore")).rows == [(1,)]


def test_names_with_dots_and_half_floats(tmp_path: Path, load: Loader) -> None:
    import numpy as np

    path = write(
        tmp_path,
        pa.table(
            {
                "a.b": [1],
                "a": [2],
                "h": pa.array(
                    np.array(
                        [
                            0.5,
                        ],
                        np.float16,
                    )
                ),
            }
        ),
    )
    assert load(ParquetSource(path)).rows == [(1, 2, 0.5)]


def test_zero_rows_are_a_result(tmp_path: Path, load: Loader) -> None:
    path = write(tmp_path, pa.table({"a": pa.array([], pa.int8())}))
    assert load(open_source(SourceRequest("parquet", path))).observation.row_count == 0


def test_wide_rows_come_in_small_batches(tmp_path: Path, load: Loader) -> None:
    path = write(tmp_path, pa.table({"a": pa.array([bytes([n]) * 1_000_000 for n in range(100)])}))
    loaded = load(ParquetSource(path), metrics=Metrics(("a",), ("a",), typed_hash=True))
    assert max(batch.num_rows for batch in loaded.batches) <= 34
    assert loaded.observation.distinct_counts == {"a": 100}


def test_damaged_nested_and_too_large_files(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([n % 5 for n in range(1_000_000)]), "l": [[1]] * 1_000_000})
    path = write(tmp_path, table)
    with pytest.raises(SourceFailed, match="which no column type holds"):
        ParquetSource(path).describe()
    with pytest.raises(SourceFailed) as failed:
        ParquetSource(path, max_bytes=path.stat().st_size + 10).describe()
    assert failed.value.code is ErrorCode.SOURCE_TOO_LARGE
    for name, data in (("cut.parquet", path.read_bytes()[:-20]), ("text.parquet", b"a,b\n1,2\n")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(SourceFailed) as failed:
            ParquetSource(tmp_path / name).describe()
        assert failed.value.code is ErrorCode.SOURCE_UNREADABLE


def test_a_page_whose_bytes_are_wrong_is_refused(tmp_path: Path, load: Loader) -> None:
    table = pa.table({"a": pa.array(range(10_000), pa.int64())})
    pq.write_table(table, tmp_path / "x.parquet", write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray((tmp_path / "x.parquet").read_bytes())
    data[5_000] ^= 1
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(SourceFailed) as failed:
        load(ParquetSource(tmp_path / "x.parquet", (Column("a", "Nullable(Int64)"),)))
    assert failed.value.code is ErrorCode.SOURCE_UNREADABLE


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"a": pa.array(range(300_000), pa.int64())}))
    source = ParquetSource(path)
    columns = source.describe()
    write(tmp_path, pa.table({"a": [1]}), "new")
    with pytest.raises(SourceFailed) as failed:
        disturb(source, columns, lambda: (tmp_path / "new").replace(path))
    assert failed.value.code is ErrorCode.SOURCE_CHANGED


_NO_MORE: Final = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from dpone.adapters.sources import refusals, unpacking
from dpone.adapters.sources.parquet import ParquetSource
from dpone.domain.errors import SourceFailed
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 64))  # one for our own opening, none for the library's
try:
    ParquetSource(Path(sys.argv[1])).describe()
except SourceFailed as error:
    print(error.what, error.next)
"""


def test_a_sound_file_that_cannot_be_opened_again_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    command = [sys.executable, "-c", _NO_MORE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Reading" in done.stdout, done.stderr[-2000:]
    assert "Too many open files" in done.stdout
    assert "/proc" not in done.stdout
