"""Manifests on disk, written from text or from plain values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.manifest import load_manifest
from dpone.domain.errors import DponeError

Write = Callable[..., Path]
Refusals = Callable[[str], tuple[str, ...]]

PROCESS: dict[str, Any] = {
    "name": "refresh",
    "source": {"type": "csv", "path": "a.csv"},
    "sink": {"type": "clickhouse", "connection_ref": "embedded", "table": {"schema": "analytics", "name": "t"}},
}


def as_yaml(value: Any) -> str:
    """JSON with decimals as written; YAML 1.2 contains it."""
    return json.dumps(value, ensure_ascii=False, default=float)


def flow_of(*processes: dict[str, Any]) -> str:
    return as_yaml({"kind": "dpone.flow.v1", "metadata": {"id": "x"}, "processes": processes})


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str | bytes, name: str = "m.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return written


@pytest.fixture
def refusals(write: Write) -> Refusals:
    """The sentences with which a manifest's text is refused."""

    def refused(text: str) -> tuple[str, ...]:
        with pytest.raises(DponeError) as caught:
            load_manifest(write(text))
        assert caught.value.code == "DPONE_MANIFEST_INVALID"
        assert caught.value.exit_code == 2
        assert caught.value.next
        return caught.value.errors

    return refused
