"""What the product does between a source and staged evidence, in one process, so that its CPU time can be taken:
reading, checking, counting, inserting, and counting the candidate again. Nothing of the ledger, no reader process.

    python -m scripts.bench_rows.staged_move FOLDER MANIFEST

Prints the seconds of CPU.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from dpone.adapters import unneeded
from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.adapters.manifest.load import load_manifest
from dpone.adapters.runtime.compose import source_of
from dpone.adapters.runtime.settings import settings_from
from dpone.adapters.runtime.staging import source_metrics, staged_metrics
from dpone.domain.tables import TableDefinition


def main(folder: Path, manifest: Path) -> None:
    """Do it once."""
    unneeded.keep_out()  # as the installed program does
    (process,) = load_manifest(manifest).processes
    source = source_of(process, settings_from(os.environ, None))
    columns = source.describe()
    platform = EmbeddedPlatform(folder / "data")
    platform.create("bench", "records", TableDefinition(columns, order_by=process.sink.order_by))
    began = time.process_time()
    with source.read(columns, source_metrics(process), lambda rows, size: None) as reading:
        platform.fill("bench", "records", columns, reading)
    staged = platform.observe("bench", "records", columns, staged_metrics(process))
    print(time.process_time() - began)
    if staged.row_count != reading.observation.row_count:
        raise SystemExit("not every row arrived")
    platform.release()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
