"""CSV files as a user has them: read exactly, or refused with the line."""

from __future__ import annotations

import gzip
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone.adapters.sources import SourceRequest, open_source
from dpone.adapters.sources.csv import CsvSource
from dpone.adapters.sources.csv_options import CsvOptions
from dpone.domain.errors import ErrorCode, SourceFailed
from dpone.domain.tables import Column, Metrics

from .conftest import Loader, disturb

TWO = (Column("a", "UInt8"), Column("b", "Nullable(String)"))


def csv_file(folder: Path, content: bytes, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def source(path: Path, columns: tuple[Column, ...] = TWO, max_bytes: int = 10**9, **options: Any) -> CsvSource:
    return CsvSource(path, CsvOptions(**options), columns, max_bytes=max_bytes)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a,b\n1,x\n", [(1, "x")]),
        (b"\xef\xbb\xbfa,b\r\n1,x\r\n2,\r\n", [(1, "x"), (2, None)]),
        (b'"a","b"\n"1",""\n2,', [(1, ""), (2, None)]),
        (b'a,b\n1,"x\ny ""z"""\n', [(1, 'x\ny "z"')]),
        (b'b,a\n"q\n",3\n', [(3, "q\n")]),
        (b'"a\n",b\n1,x\n'.replace(b"a\n", b"a"), [(1, "x")]),
        (b"b,a\n\xef\xbb\xbfq,3\n", [(3, "\ufeffq")]),
        (b"a,b\n", []),
        (b"a,b", []),
        (b"a,b\n+007,\xc3\xa9\n", [(7, "é")]),
    ],
)
def test_what_is_read(tmp_path: Path, load: Loader, content: bytes, rows: list[Any]) -> None:
    loaded = load(source(csv_file(tmp_path, content)))
    assert loaded.rows == rows
    assert loaded.observation.row_count == len(rows)


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"a,b\n1,x\n2\n", ErrorCode.SOURCE_UNREADABLE, "line 3: 1 field where"),
        (b"a,b\n1,x\n2,y,z\n", ErrorCode.SOURCE_UNREADABLE, "line 3: 3 fields where"),
        (b"a,b\n1,x\n\n2,y\n", ErrorCode.SOURCE_UNREADABLE, "line 3: a blank line"),
        (b'a,b\n1,"x"y\n', ErrorCode.SOURCE_UNREADABLE, "line 2: text after"),
        (b'a,b\n1,"x\n\n', ErrorCode.SOURCE_UNREADABLE, "line 2: a quote that is never closed"),
        (b"a,b\n1,x\r2,y\n", ErrorCode.SOURCE_UNREADABLE, "line 2: a carriage return"),
        (b"a,b\n1,x\0\n", ErrorCode.SOURCE_UNREADABLE, "line 2: a NUL"),
        (b"a,b\n1,x\n2,\xe9\n", ErrorCode.SOURCE_UNREADABLE, "line 3: bytes that are not UTF-8"),
        (b"a,a\n1,x\n", ErrorCode.SOURCE_UNREADABLE, "line 1: the header names column"),
        (b"a,c\n1,x\n", ErrorCode.MANIFEST_INVALID, "declared, but not in"),
        (b"a,b,c\n1,x,y\n", ErrorCode.MANIFEST_INVALID, "but not declared"),
        (b"", ErrorCode.SOURCE_UNREADABLE, "is empty"),
        (b"\xef\xbb\xbf", ErrorCode.SOURCE_UNREADABLE, "no header"),
        (b"\na,b\n1,x\n", ErrorCode.SOURCE_UNREADABLE, "line 1: a blank line"),
        (b"a,b\n1,x\n300,y\n", ErrorCode.VALUE_REFUSED, "line 3, column"),
        (b"a,b\n1,x\n,y\n", ErrorCode.VALUE_REFUSED, "line 3, column"),
        (b'a,b\n1,"x\n\n"\n0x1F,y\n', ErrorCode.VALUE_REFUSED, "line 5, column"),
        (b'a,b\n1,x\n"",y\n', ErrorCode.VALUE_REFUSED, "line 3, column"),
        (b"a,b\n1,x\n 2,y\n", ErrorCode.VALUE_REFUSED, "line 3, column"),
    ],
)
def test_what_is_refused(tmp_path: Path, load: Loader, content: bytes, code: ErrorCode, words: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        load(source(csv_file(tmp_path, content)))
    assert failed.value.code is code
    assert words in failed.value.what
    for value in ("300", "0x1F"):
        assert value not in f"{failed.value.what} {failed.value.next} {failed.value.errors}"


@pytest.mark.parametrize(
    ("options", "content", "rows"),
    [
        ({"null_values": ("NA",)}, b'a,b\n1,NA\n2,"NA"\n3,\n', [(1, None), (2, "NA"), (3, "")]),
        ({"null_values": ("NA",), "quoted_null": True}, b'a,b\n2,"NA"\n', [(2, None)]),
        ({"delimiter": ";", "quote": "'"}, b"a;b\n1;'x;''y'\n2;\"\n", [(1, "x;'y"), (2, '"')]),
        ({"quote": ""}, b'a,b\n1,x"y\n', [(1, 'x"y')]),
        ({"header": False}, b"1,x\n2,y\n", [(1, "x"), (2, "y")]),
        ({"skip_rows": 2}, b'made by "x\n\na,b\n1,x\n', [(1, "x")]),
        ({"encoding": "latin-1"}, b"a,b\n1,\xe9\n", [(1, "é")]),
        ({"encoding": "utf-16"}, "a,b\n1,é\n".encode("utf-16"), [(1, "é")]),
        ({"trim": True}, b"a,b\n1 , \n2, " + b" " * 900_000 + b"x\n", [(1, None), (2, "x")]),
        ({"trim": True, "delimiter": "\t"}, b"a\tb\n 1 \t\t\n".replace(b"\t\t", b"\t"), [(1, None)]),
        ({"trim": True}, b' a , b\n 1,  x y \n2, "  q " \n3,  \n', [(1, "x y"), (2, "  q "), (3, None)]),
    ],
)
def test_options(tmp_path: Path, load: Loader, options: dict[str, Any], content: bytes, rows: list[Any]) -> None:
    assert load(source(csv_file(tmp_path, content), **options)).rows == rows


def test_another_encoding_is_refused_with_its_line(tmp_path: Path, load: Loader) -> None:
    for encoding, octets in (("cp1252", b"\x81"), ("ascii", b"\xc3\xa9")):
        with pytest.raises(SourceFailed, match=f"line 3: bytes that are not {encoding}"):
            load(source(csv_file(tmp_path, b"a,b\n1,x\n2," + octets + b"\n"), encoding=encoding))


def test_a_blank_line_is_an_empty_field_where_there_is_one_column(tmp_path: Path, load: Loader) -> None:
    path = csv_file(tmp_path, b"a\nx\n\n\r\ny\n")
    assert load(source(path, (Column("a", "Nullable(String)"),))).rows == [("x",), (None,), (None,), ("y",)]


def test_extra_columns_are_left_out_when_asked(tmp_path: Path, load: Loader) -> None:
    path = csv_file(tmp_path, b"c,b,a\n9,x,1\n")
    assert load(CsvSource(path, CsvOptions(), TWO, "ignore")).rows == [(1, "x")]


def test_a_decimal_comma(tmp_path: Path, load: Loader) -> None:
    columns = (Column("a", "Float64"), Column("b", "Decimal(5, 2)"))
    path = csv_file(tmp_path, b"a;b\n1,5;2,50\n")
    loaded = load(source(path, columns, delimiter=";", decimal_point=","))
    assert [(row[0], str(row[1])) for row in loaded.rows] == [(1.5, "2.50")]
    csv_file(tmp_path, b"a;b\n1,5;2,50\n1.5;2\n")
    with pytest.raises(SourceFailed, match="line 3"):
        load(source(path, columns, delimiter=";", decimal_point=","))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 255), st.none() | st.text('ab,"\n\r é', max_size=6)), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 40),
)
def test_what_was_written_is_read_back_whatever_the_blocks(
    tmp_path: Path, load: Loader, rows: list[tuple[int, str | None]], end: str, size: int
) -> None:
    def field(text: str | None) -> str:
        if text is None:
            return ""
        quoted = '"' + text.replace('"', '""') + '"'
        return quoted if text == "" or set(text) & set(',"\n\r') else text

    content = "".join(["a,b" + end, *(f"{number},{field(text)}{end}" for number, text in rows)])
    path = csv_file(tmp_path, content.encode())
    with patch("dpone.adapters.sources.unpacking.BLOCK_BYTES", size):
        assert load(source(path)).rows == rows


def test_files_that_are_no_files(tmp_path: Path, load: Loader) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, words in (("pipe.csv", "pipe"), ("folder.csv", "directory"), ("none.csv", "does not exist")):
        with pytest.raises(SourceFailed, match=words) as failed:
            load(source(tmp_path / name))
        assert failed.value.code is ErrorCode.SOURCE_UNREADABLE
        assert str(tmp_path) not in str(failed.value.errors)


def test_packed_files(tmp_path: Path, load: Loader) -> None:
    content = b"a,b\n" + b"".join(b"%d,x%d\n" % (n % 256, n) for n in range(200_000))
    half = len(content) // 2
    plain = load(source(csv_file(tmp_path, content))).rows
    members = gzip.compress(content[:half]) + gzip.compress(content[half:]) + b"\0" * 512
    assert load(source(csv_file(tmp_path, members, "x.csv.gz"))).rows == plain
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", content)
    assert load(source(tmp_path / "x.zip")).rows == plain


def test_packed_files_that_are_damaged_or_too_large(tmp_path: Path, load: Loader) -> None:
    content = b"a,b\n" + b"1,x\n" * 3_000_000
    packed = gzip.compress(content)
    broken = bytearray(packed)
    broken[-6] ^= 1
    with zipfile.ZipFile(tmp_path / "two.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", content)
        archive.writestr("b.csv", b"a,b\n")
    with zipfile.ZipFile(tmp_path / "one.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", content)
    bomb = (tmp_path / "one.zip").read_bytes()
    flipped = bytearray(bomb)
    flipped[bomb.index(b"a.csv") + 40] ^= 1
    for name, data, code in (
        ("cut.gz", packed[: len(packed) // 2], ErrorCode.SOURCE_UNREADABLE),
        ("crc.gz", bytes(broken), ErrorCode.SOURCE_UNREADABLE),
        ("junk.gz", packed + b"junk", ErrorCode.SOURCE_UNREADABLE),
        ("cut.zip", bomb[:-30], ErrorCode.SOURCE_UNREADABLE),
        ("crc.zip", bytes(flipped), ErrorCode.SOURCE_UNREADABLE),
        ("two.zip", (tmp_path / "two.zip").read_bytes(), ErrorCode.SOURCE_UNREADABLE),
    ):
        with pytest.raises(SourceFailed) as failed:
            load(source(csv_file(tmp_path, data, name)))
        assert failed.value.code is code, name
        assert "sound" in failed.value.what or "exactly one" in failed.value.what, name  # not a ragged last row
    for name, data in (("bomb.zip", bomb), ("bomb.gz", packed), ("plain.csv", content)):
        with pytest.raises(SourceFailed) as failed:
            load(source(csv_file(tmp_path, data, name), max_bytes=5_000_000))
        assert failed.value.code is ErrorCode.SOURCE_TOO_LARGE, name


def test_a_file_that_grows_or_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"a,b\n" + b"1,x\n" * 200_000)

    def append() -> None:
        path.write_bytes(path.read_bytes() + b"2,y\n")

    def replace() -> None:
        csv_file(tmp_path, path.read_bytes(), "new").replace(path)

    def shrink() -> None:
        os.truncate(path, 1_000)

    for change in (append, replace, lambda: os.utime(path), shrink, path.unlink):
        with pytest.raises(SourceFailed) as failed:
            disturb(source(path), TWO, change)
        assert failed.value.code is ErrorCode.SOURCE_CHANGED


def test_leaving_early_is_quick(tmp_path: Path) -> None:
    path = csv_file(tmp_path, b"a,b\n" + b"1,x\n" * 3_000_000)
    with source(path).read(TWO, Metrics(), lambda rows, read_bytes: None) as reading:
        next(iter(reading))
        with pytest.raises(RuntimeError):
            _ = reading.observation


def test_an_untyped_file_is_refused_with_a_block_to_paste(tmp_path: Path) -> None:
    content = b'n,no,odd name: #,code,f,d,t,u,all\n1,true,-1,007,1.5,2013-01-01,2013-01-01T10:00:00.5Z,a"\n'
    content = content.replace(b'a"', b"0F0E0D0C-0B0A-0908-0706-050403020100,") + (
        b"70000,false,,1,2,1950-01-01,2013-01-01 10:00:00,00000000-0000-0000-0000-000000000000,\n"
    )
    request = SourceRequest("csv", csv_file(tmp_path, content))
    with pytest.raises(SourceFailed) as failed:
        open_source(request).describe()
    assert failed.value.code is ErrorCode.MANIFEST_INVALID
    assert failed.value.next is not None
    assert failed.value.next.endswith(
        """columns:
  "n": UInt32
  "no": Bool
  "odd name: #": "Nullable(Int8)"
  code: String
  f: Float64
  d: Date32
  t: "DateTime64(3, 'UTC')"
  u: UUID
  all: "Nullable(String)\""""
    )


def test_options_of_a_manifest_are_checked(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"separator": ";"},
        {"delimiter": ";;"},
        {"quote": ","},
        {"trim": 1},
        {"skip_rows": True},
        {"encoding": "nope"},
        {"null_values": "NA"},
        {"compression": "rar"},
    ]
    for options in wrong:
        with pytest.raises(SourceFailed) as failed:
            open_source(SourceRequest("csv", tmp_path / "x.csv", options=options))
        assert failed.value.code is ErrorCode.MANIFEST_INVALID


def test_the_flights(load: Loader, flights: Path, flight_columns: tuple[Column, ...]) -> None:
    metrics = Metrics(("dep_time", "tailnum", "year"), ("tailnum", "flight", "time_hour"), typed_hash=True)
    loaded = load(CsvSource(flights, CsvOptions(null_values=("", "NA")), flight_columns), metrics=metrics)
    assert loaded.observation.row_count == 336_776
    assert loaded.observation.null_counts == {"dep_time": 8_255, "tailnum": 2_512, "year": 0}
    assert loaded.observation.distinct_counts == {"tailnum": 4_043, "flight": 3_844, "time_hour": 6_936}
    assert loaded.observation.typed_hash == "v1:336776:7134433326403004457"  # the engine's, from the same rows
    assert loaded.rows[0][-1] == datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert all(batch.num_rows <= 65_536 for batch in loaded.batches)
    assert loaded.fingerprint["name"] == "flights.csv.zip"
    assert loaded.fingerprint["bytes"] == flights.stat().st_size
