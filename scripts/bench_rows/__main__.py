"""Choose rows, measure them, print the table, write them to bench.json (the cluster's: bench-cluster.json).

Rows that were not measured this time stay as they were: each is a ratio of its own run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scripts.flights import CHECKOUT

from . import cluster, commands, ledger, loads, memory, parsing, sources
from .row import Row

ROWS: Final[Mapping[str, Callable[[int], Iterator[Row]]]] = {
    "load": loads.whole_run,
    "stage": loads.staging,
    "replay": commands.replay,
    "help": commands.help_text,
    "validate": commands.validate,
    "validate-large": commands.validate_large,
    "ledger": ledger.appends,
    "rebuild": ledger.rebuild,
    "memory": memory.peaks,
    "sources": sources.speed,
    "sources-memory": sources.memory,
    "parse": parsing.operator,
}

CLUSTER_ROWS: Final[Mapping[str, Callable[[int], Iterator[Row]]]] = {"moves": cluster.moves}


def main(words: list[str]) -> int:
    """Measure. Returns 0 when every row is within its target, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("where", nargs="?", default="embedded", choices=("embedded", "cluster"), help="on what")
    parser.add_argument("--only", help=f"comma-separated: {', '.join(ROWS)}; of the cluster: {', '.join(CLUSTER_ROWS)}")
    parser.add_argument("--rounds", type=int, default=7, help="pairs of measurements per row")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    chosen = parser.parse_args(words)
    rounds = 3 if chosen.quick else chosen.rounds
    rows, file = (CLUSTER_ROWS, "bench-cluster.json") if chosen.where == "cluster" else (ROWS, "bench.json")
    measured: list[Row] = []
    print(f"{'row':<44} {'measured':>14} {'target':>14}   {'spread':<22} verdict")
    for name in (chosen.only or ",".join(rows)).split(","):
        for row in rows[name](rounds):
            measured.append(row)
            print(row.line(), flush=True)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    kept = _measured_earlier(CHECKOUT / file, machine)
    data = {"machine": machine, "rows": kept | {row.name: row.data() for row in measured}}
    (CHECKOUT / file).write_text(json.dumps(data, indent=1) + "\n")
    return int(not all(row.holds for row in measured))


def _measured_earlier(file: Path, machine: dict[str, Any]) -> dict[str, Any]:
    """The rows of a file that this kind of machine wrote."""
    if not file.is_file():
        return {}
    data = json.loads(file.read_text(encoding="utf-8"))
    return dict(data["rows"]) if data["machine"] == machine else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
