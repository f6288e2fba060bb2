"""What the product does between a source and staged evidence, in one process, so that its CPU time can be taken:
reading, checking, counting, inserting, and counting the candidate again. Nothing of the ledger, no reader process.

    python -m scripts.bench_rows.staged_move MANIFEST [FOLDER]

Prints the seconds of CPU. Without a folder the rows go nowhere: only reading, checking and counting.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dpone.adapters import engine_memory, unneeded
from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.adapters.manifest.load import load_manifest
from dpone.adapters.runtime.compose import source_of
from dpone.adapters.runtime.settings import settings_from
from dpone.adapters.runtime.staging import source_metrics, staged_metrics
from dpone.domain.configuration import Process
from dpone.domain.ports import SourceReading
from dpone.domain.tables import Column, TableDefinition


def main(manifest: Path, folder: Path | None) -> None:
    """Do it once."""
    unneeded.keep_out()  # as the installed program does
    engine_memory.give_back_soon()
    (process,) = load_manifest(manifest).processes
    source = source_of(process, settings_from(os.environ, None))
    columns = source.describe()
    began = time.process_time()
    with source.read(columns, source_metrics(process), lambda rows, size: None) as reading:
        if folder is None:
            rows = sum(batch.num_rows for batch in reading)
        else:
            rows = _staged(folder, process, columns, reading)
    print(time.process_time() - began)
    if rows != reading.observation.row_count:
        raise SystemExit("not every row arrived")


def _staged(folder: Path, process: Process, columns: Sequence[Column], reading: SourceReading) -> int:
    platform = EmbeddedPlatform(folder / "data")
    platform.create("bench", "records", TableDefinition(tuple(columns), order_by=process.sink.order_by))
    platform.fill("bench", "records", columns, reading)
    counted = platform.observe("bench", "records", columns, staged_metrics(process))
    platform.release()
    return counted.row_count


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
