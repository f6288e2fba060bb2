"""The engine loses 9 to 18 descriptors whenever it is opened, filled and closed: a long run must not end of it.

The engine's import raises the soft limit to the hard one by itself. Where a new version of it no longer does, this
fails, and the product has to.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_LOADS = """
import os, resource, sys
from pathlib import Path
import pyarrow as pa
from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
from dpone.domain.tables import Column, TableDefinition
platform, columns = EmbeddedPlatform(Path(sys.argv[1])), (Column("a", "UInt8"),)
batch = pa.record_batch([pa.array([1], pa.uint8())], pa.schema([pa.field("a", pa.uint8(), False)]))
resource.setrlimit(resource.RLIMIT_NOFILE, (96, 4096))
for number in range(12):
    platform.acquire()
    platform.create("db", f"t{number}", TableDefinition(columns))
    platform.fill("db", f"t{number}", columns, [batch])
    platform.release()
print(len(os.listdir("/proc/self/fd")))
"""


def test_load_after_load_in_one_process_outlives_the_usual_limit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LOADS, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    left_open = int(done.stdout)
    assert left_open > 96, "the engine no longer loses descriptors: this test guards nothing any more"
