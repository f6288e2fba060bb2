"""The measured figures, from the file that the benchmark leaves; without one, the page says so."""

from __future__ import annotations

import json
from pathlib import Path

from .pages import table

_BENCH = Path(__file__).parents[2] / "bench.json"


def figures() -> str:
    """A table of what ``bench.json`` holds."""
    if not _BENCH.is_file():
        return "No figures here yet: run `scripts/bench`, then `scripts/docs-reference --write`."
    data = json.loads(_BENCH.read_text(encoding="utf-8"))
    rows = [
        (name, f"{row['median']:g} {row['unit']}", f"{row['min']:g} … {row['max']:g}", row["target"])
        for name, row in data["rows"].items()
    ]
    machine = data["machine"]
    made = f"Python {machine['python']} on {machine['machine']}, {machine['cpus']} processors, {data['rounds']} rounds:"
    return f"{made}\n\n" + table(("what", "median", "range", "target"), rows)
