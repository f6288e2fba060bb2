"""Source files whose bytes were changed at random, or that lie about their size: read as what they say, or refused."""

from __future__ import annotations

import gzip
import io
import random
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from dpone.adapters.sources.arrow import ArrowSource
from dpone.adapters.sources.csv import CsvSource
from dpone.adapters.sources.parquet import ParquetSource
from dpone.domain.errors import ErrorCode, SourceFailed
from dpone.domain.ports import Source
from dpone.domain.tables import Column, Metrics

CANARY = "c4n4ry-of-a-cell"
COLUMNS = (Column("a", "Nullable(Int64)"), Column("b", "Nullable(String)"))
TABLE = pa.table({"a": pa.array([1, None, 3] * 50), "b": pa.array([CANARY, None, "x"] * 50)})
CSV = "a,b\n" + f"1,{CANARY}\n,\n3,x\n" * 50
_GROWTH_KIB_MAX = 400 * 1024


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(TABLE, out, compression="snappy", write_page_checksum=True)
    return out.getvalue()


def _arrow() -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return out.getvalue()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", CSV)
    return out.getvalue()


KINDS: dict[str, tuple[str, Callable[[], bytes], Callable[[Path], Source]]] = {
    "parquet": ("x.parquet", _parquet, lambda path: ParquetSource(path, COLUMNS)),
    "arrow": ("x.arrow", _arrow, lambda path: ArrowSource(path, COLUMNS)),
    "csv": ("x.csv", lambda: CSV.encode(), lambda path: CsvSource(path, declared=COLUMNS)),
    "zip": ("x.csv.zip", _zip, lambda path: CsvSource(path, declared=COLUMNS)),
    "gzip": ("x.csv.gz", lambda: gzip.compress(CSV.encode()), lambda path: CsvSource(path, declared=COLUMNS)),
}


def _load(source: Source) -> int:
    source.describe()
    with source.read(COLUMNS, Metrics(("a",)), lambda rows, source_bytes: None) as reading:
        return sum(int(batch.num_rows) for batch in reading)


def _refused(source: Source) -> SourceFailed | None:
    try:
        _load(source)
    except SourceFailed as error:
        return error
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_as_it_was_is_read(kind: str, tmp_path: Path) -> None:
    name, content, source = KINDS[kind]
    (tmp_path / name).write_bytes(content())
    assert _load(source(tmp_path / name)) == 150


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["all of it", "the end"])
def test_changed_bytes_are_an_error_of_the_source_or_other_rows(kind: str, part: str, tmp_path: Path) -> None:
    """The end is where Parquet, Arrow and zip keep what describes the rest."""
    name, content, source = KINDS[kind]
    whole, path, chance = content(), tmp_path / name, random.Random(f"{kind} {part}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(120):
        changed = bytearray(whole)
        first = 0 if part == "all of it" else max(0, len(whole) - 400)
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(first, len(whole))] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
            )
        path.write_bytes(changed)
        refused = _refused(source(path))
        if refused is not None:
            said = " ".join(map(str, (refused.what, refused.safe, refused.next, refused.errors)))
            assert CANARY not in said
            assert str(tmp_path) not in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _GROWTH_KIB_MAX


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind != "csv"]
)  # a text that ends earlier is a shorter text
def test_a_file_that_was_cut_anywhere_never_counts_as_a_shorter_one(kind: str, tmp_path: Path) -> None:
    name, content, source = KINDS[kind]
    whole = content()
    for length in {*range(0, len(whole), max(1, len(whole) // 40)), len(whole) - 1}:
        (tmp_path / name).write_bytes(whole[:length])
        assert _refused(source(tmp_path / name)) is not None, length


def test_a_bomb_ends_at_the_bound_and_not_at_the_machines_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    zeros = b"1,x\n" * 25_000_000
    for name in ("x.csv.gz", "x.csv.zip"):
        path = tmp_path / name
        if name.endswith("gz"):
            path.write_bytes(gzip.compress(b"a,b\n" + zeros, 1))
        else:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("a.csv", b"a,b\n" + zeros)
        refused = _refused(CsvSource(path, declared=COLUMNS, max_bytes=5_000_000))
        assert refused is not None
        assert refused.code is ErrorCode.SOURCE_TOO_LARGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _GROWTH_KIB_MAX
