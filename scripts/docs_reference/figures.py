"""The measured figures, from the file that the benchmark leaves; without one, the page says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .pages import table

_BENCH = Path(__file__).parents[2] / "bench.json"


def figures() -> str:
    """A table of what ``bench.json`` holds."""
    if not _BENCH.is_file():
        return "No figures here yet: run `scripts/bench`, then `scripts/docs-reference --write`."
    data = json.loads(_BENCH.read_text(encoding="utf-8"))
    rows = [(name, _shown(value)) for name, value in _flat(data)]
    return table(("figure", "value"), rows)


def _flat(data: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(data, dict):
        return [pair for key, value in data.items() for pair in _flat(value, f"{name}.{key}" if name else str(key))]
    if isinstance(data, list):
        return [pair for index, value in enumerate(data) for pair in _flat(value, f"{name}[{index}]")]
    return [(name, data)]


def _shown(value: Any) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
