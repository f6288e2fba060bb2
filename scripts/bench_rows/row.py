"""One measured figure with its target, and the processes that are timed for it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scripts.flights import DEMO

BENCH = DEMO / "bench"
DPONE = str(Path(sys.executable).parent / "dpone")


@dataclass(frozen=True, slots=True)
class Row:
    """``values`` are single measurements; what counts is their median. ``at_most`` says which side the target is on."""

    name: str
    unit: str
    values: tuple[float, ...]
    target: float
    at_most: bool = True

    @property
    def measured(self) -> float:
        return median(self.values)

    @property
    def holds(self) -> bool:
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def line(self) -> str:
        """The row of the printed table."""
        sign = "≤" if self.at_most else "≥"
        spread = f"{min(self.values):.3g} … {max(self.values):.3g}"
        shown, wanted = f"{self.measured:.3g} {self.unit}", f"{sign} {self.target:g} {self.unit}"
        return f"{self.name:<44} {shown:>14} {wanted:>14}   {spread:<22} {'ok' if self.holds else 'OVER'}"

    def data(self) -> dict[str, Any]:
        """The row of bench.json."""
        return {
            "median": round(self.measured, 4),
            "min": round(min(self.values), 4),
            "max": round(max(self.values), 4),
            "unit": self.unit,
            "times": len(self.values),
            "target": f"{'≤' if self.at_most else '≥'} {self.target:g}",
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True)
class Timed:
    """One finished process: seconds of wall and of CPU (with its children), peak memory in MiB, what it printed."""

    wall: float
    cpu: float
    peak: float
    out: str


def timed(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Timed:
    """Run a command to its end. Raises RuntimeError when it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DPONE_", "AIRFLOW"))}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # Its own small parent, so that the peak is this command's and not that of the largest one so far.
    wrapped = [sys.executable, "-c", _PARENT, *command]
    done = subprocess.run(wrapped, capture_output=True, text=True, env={**kept, **(environment or {})}, check=False)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    out, _, figures = done.stdout.rpartition("\n#")
    peak, own_wall = (float(figure) for figure in figures.split())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(min(own_wall, wall), cpu, peak / 1024, out)


_PARENT = """
import resource, subprocess, sys, time
began = time.perf_counter()
code = subprocess.run(sys.argv[1:]).returncode
wall = time.perf_counter() - began
sys.stdout.write(f"\\n#{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} {wall}")
sys.exit(code)
"""
