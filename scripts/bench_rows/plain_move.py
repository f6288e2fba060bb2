"""The plain move into the engine, as its own program: ``INSERT … SELECT`` from a reader of the engine, or from a pipe.

    python -m scripts.bench_rows.plain_move FOLDER 'FROM' [COMMAND …]

``FROM`` is what the engine selects from; ``{pipe}`` in it is a named pipe that ``COMMAND`` writes to meanwhile. Prints
the seconds from starting the command to the last row being in the table, and those of CPU, the command's included.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from .records import STRUCTURE


def main(folder: Path, selected: str, command: list[str]) -> None:
    """Do it once."""
    from chdb.session import Session

    folder.mkdir(parents=True, exist_ok=True)
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    session = Session(str(folder / "data"))
    session.query("CREATE DATABASE plain ENGINE = Atomic")
    session.query(f"CREATE TABLE plain.records ({STRUCTURE}) ENGINE = MergeTree ORDER BY record_id")
    began, cpu = time.perf_counter(), _cpu()
    writer = subprocess.Popen(["sh", "-c", 'exec "$@" > "$0"', str(pipe), *command]) if command else None
    session.query("INSERT INTO plain.records SELECT * FROM " + selected.format(pipe=pipe, structure=STRUCTURE))
    if writer is not None and writer.wait() != 0:
        raise SystemExit("the command that writes the rows failed")
    print(time.perf_counter() - began, _cpu() - cpu)
    session.close()


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
