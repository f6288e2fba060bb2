"""The typed hash's test vectors: by the page's own words, and by the engine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from scripts.docs_reference.hashes import _VECTORS, _batch

from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.domain.tables import Column, Metrics, TableDefinition
from dpone.domain.types import parse_type

from .pages import ROOT

_ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \| `([^`]+)` \| `(\d+)` \|$", re.MULTILINE)
VECTORS = _ROW.findall((ROOT / "docs/reference/typed-hash.md").read_text(encoding="utf-8"))


def test_there_is_a_vector_of_every_tag() -> None:
    tags = {cell[0] for _, _, row, _ in VECTORS for cell in (row,)}
    assert {"i", "s", "b", "g", "N", "n", "d", "t", "u", "x"} <= tags


@pytest.mark.parametrize(("kinds", "shown", "row", "expected"), VECTORS)
def test_the_hash_is_the_first_half_of_the_rows_md5(kinds: str, shown: str, row: str, expected: str) -> None:
    digest = hashlib.md5(row.encode(), usedforsecurity=False).digest()
    assert int.from_bytes(digest[:8], "big") == int(expected)


def test_the_engine_agrees(tmp_path: Path) -> None:
    platform = EmbeddedPlatform(tmp_path / "data")
    try:
        for place, (kinds, values, shown) in enumerate(_VECTORS):
            assert _of_engine(platform, f"v{place}", kinds, values) == f"v1:1:{VECTORS[place][3]}", shown
    finally:
        platform.release()


def _of_engine(platform: EmbeddedPlatform, table: str, kinds: tuple[str, ...], values: tuple[Any, ...]) -> str | None:
    columns = tuple(Column(str(number), str(parse_type(kind))) for number, kind in enumerate(kinds))
    platform.create("vectors", table, TableDefinition(columns))
    platform.fill("vectors", table, columns, [_batch(kinds, values)])
    return platform.observe("vectors", table, columns, Metrics(typed_hash=True)).typed_hash
