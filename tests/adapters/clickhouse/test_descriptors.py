"""A long run opens the engine's folder again and again; the descriptors that it loses must not end the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_LIMITED = """
import resource, sys
soft, hard, wanted = (int(word) for word in sys.argv[1:4])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from dpone.adapters.clickhouse.descriptors import raise_limit
print(raise_limit(wanted), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""

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


def answer(code: str, *words: object) -> list[int]:
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "then"),
    [(256, 2048, 65_536, 2048), (256, 2048, 1024, 1024), (512, 512, 1024, 512), (900, 1024, 600, 900)],
)
def test_the_soft_limit_goes_up_within_the_hard_one_and_never_down(
    soft: int, hard: int, wanted: int, then: int
) -> None:
    assert answer(_LIMITED, soft, hard, wanted) == [then, then, hard]


def test_an_engine_that_is_opened_for_load_after_load_outlives_the_usual_limit(tmp_path: Path) -> None:
    (left_open,) = answer(_LOADS, tmp_path / "data")
    assert left_open > 96, "the engine no longer loses descriptors: this room is not needed any more"
