"""What a command costs that has nothing to do: a committed replay, and the help."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.flights import ARCHIVE, CHECKOUT, MANIFEST, provide_flights

from .loads import fresh, run_words
from .row import DPONE, Row, timed

_PROCESSES = 1_000


def replay(rounds: int) -> Iterator[Row]:
    """CPU seconds of a committed replay beyond importing the engine and opening the same folder; rows that it reads."""
    provide_flights()
    home = fresh("replay")
    words, environment = run_words(CHECKOUT / MANIFEST, "r"), {"DPONE_HOME": str(home)}
    timed(words, environment)
    plain = [sys.executable, "-m", "scripts.bench_rows.plain", str(home / "embedded" / "data"), str(ARCHIVE), "open"]
    beyond, read = [], []
    for _ in range(rounds):
        mine = timed(words, environment)
        beyond.append(mine.cpu - timed(plain).cpu)
        read.append(float(json.loads(mine.out)["result"]["extracted_rows"]))
    yield Row("committed replay, CPU beyond opening the engine", "s", tuple(beyond), 0.4)
    yield Row("committed replay, rows read", "rows", tuple(read), 0)


def help_text(rounds: int) -> Iterator[Row]:
    """CPU seconds of ``dpone --help``."""
    plain = [sys.executable, "-c", "pass"]
    values = [timed([DPONE, "--help"]).cpu - timed(plain).cpu / 2 for _ in range(rounds + 1)]
    yield Row("dpone --help, CPU", "s", tuple(values[1:]), 0.15)


def validate(rounds: int) -> Iterator[Row]:
    """CPU seconds of ``dpone validate`` for the flights."""
    plain = [sys.executable, "-c", "pass"]
    words = [DPONE, "validate", str(CHECKOUT / MANIFEST)]
    values = [timed(words).cpu - timed(plain).cpu / 2 for _ in range(rounds + 1)]
    yield Row("dpone validate, CPU", "s", tuple(values[1:]), 0.4)


def validate_large(rounds: int) -> Iterator[Row]:
    """CPU seconds of ``dpone validate`` for a flow of 1,000 whole processes."""
    plain = [sys.executable, "-c", "pass"]
    words = [DPONE, "validate", str(_large_flow())]
    values = [timed(words).cpu - timed(plain).cpu / 2 for _ in range(rounds + 1)]
    yield Row("dpone validate, 1,000 processes, CPU", "s", tuple(values[1:]), 2)


def _large_flow() -> Path:
    """Written as an author would, in block style: that is what the parser's time goes into."""
    from ruamel.yaml import YAML

    from .sources import full_refresh

    processes = [
        {**full_refresh({"type": "csv", "path": f"data/{number}.csv"}, f"t{number}"), "name": f"p{number}"}
        for number in range(_PROCESSES)
    ]
    path = fresh("validate") / "large.flow.yaml"
    with path.open("w") as file:
        YAML(typ="safe", pure=True).dump(
            {"kind": "dpone.flow.v1", "metadata": {"id": "large"}, "processes": processes}, file
        )
    return path
