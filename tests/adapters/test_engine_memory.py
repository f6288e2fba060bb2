"""What the engine itself says of its allocator, in a process that began as the installed program does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import os, sys
from dpone.adapters.cli import program
sys.argv = ["dpone", "--version"]
os._exit = sys.exit
try:
    program.main()
except SystemExit:
    pass
from chdb.session import Session
session = Session(sys.argv_folder)
print(session.query("SELECT * FROM system.jemalloc_stats", "TSVRaw").data())
"""


@pytest.mark.parametrize(("own", "kept"), [(None, "500"), ("dirty_decay_ms:250", "250")])
def test_the_engine_keeps_unused_memory_for_half_a_second(tmp_path: Path, own: str | None, kept: str) -> None:
    environment = {"PATH": "/usr/bin:/bin"} | ({"JE_MALLOC_CONF": own} if own else {})
    script = _PROGRAM.replace("sys.argv_folder", repr(str(tmp_path / "engine")))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    assert f"opt.dirty_decay_ms: {kept} " in done.stdout
