"""Whether a wheel holds exactly what it must: every module of the three rooms, under ``dpone``, and nothing else."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
ROOMS = ("domain", "ledger", "adapters")


def expected() -> set[str]:
    """The files of the package, as the checkout has them."""
    rooms = {f"dpone/{path.relative_to(CHECKOUT)}" for room in ROOMS for path in (CHECKOUT / room).rglob("*.py")}
    return rooms | {"dpone/__init__.py", "dpone/py.typed"}


def main(wheel: str) -> int:
    """Compare; print what is missing or too much. Returns the exit code."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    for name in sorted(expected() - found):
        print(f"missing from the wheel: {name}")
    for name in sorted(found - expected()):
        print(f"not of the package: {name}")
    print(f"{len(found)} files in the wheel")
    return int(found != expected())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
