"""The measured figures, from the files that the benchmark leaves; without one, the page says so."""

from __future__ import annotations

import json
from pathlib import Path

from .pages import table

_FILES = ("bench.json", "bench-cluster.json")
_CHECKOUT = Path(__file__).parents[2]


def figures() -> str:
    """A table of what the files hold."""
    found = [json.loads(file.read_text(encoding="utf-8")) for name in _FILES if (file := _CHECKOUT / name).is_file()]
    if not found:
        return "No figures here yet: run `scripts/bench`, then `scripts/docs-reference --write`."
    rows = [
        (name, f"{row['median']:g} {row['unit']}", f"{row['min']:g} … {row['max']:g}", str(row["times"]), row["target"])
        for data in found
        for name, row in data["rows"].items()
    ]
    machine = found[0]["machine"]
    made = f"Python {machine['python']} on {machine['machine']}, {machine['cpus']} processors:"
    return f"{made}\n\n" + table(("what", "median", "range", "measured", "target"), rows)
