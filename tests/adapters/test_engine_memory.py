"""What the engine itself says of its allocator, in a process that began as the product's own do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_BEGINNINGS = {
    "the installed program": """
from dpone.adapters.cli import program
sys.argv = ["dpone", "--version"]
program.main()
""",
    "a load's process in Airflow": """
import socket
from dpone.adapters.airflow import child
child._answer = lambda channel, composer: 0
child.main([str(socket.socketpair()[0].detach()), str(os.getppid())])
""",
}
_ENGINE = """
import os, sys
os._exit = sys.exit
folder = sys.argv[1]
try:
    exec({beginning!r})
except SystemExit:
    pass
from chdb.session import Session
print(Session(folder).query("SELECT * FROM system.jemalloc_stats", "TSVRaw").data())
"""


@pytest.mark.parametrize(("own", "kept"), [(None, "500"), ("dirty_decay_ms:250", "250")])
@pytest.mark.parametrize("beginning", _BEGINNINGS.values(), ids=_BEGINNINGS)
def test_the_engine_keeps_unused_memory_for_half_a_second(
    tmp_path: Path, beginning: str, own: str | None, kept: str
) -> None:
    environment = {"PATH": "/usr/bin:/bin"} | ({"JE_MALLOC_CONF": own} if own else {})
    command = [sys.executable, "-c", _ENGINE.format(beginning=beginning), str(tmp_path / "engine")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    assert f"opt.dirty_decay_ms: {kept} " in done.stdout


def test_an_operators_own_setting_reaches_a_load_in_airflow() -> None:
    from dpone.adapters.airflow.process import environment

    assert environment({"JE_MALLOC_CONF": "dirty_decay_ms:250"})["JE_MALLOC_CONF"] == "dirty_decay_ms:250"
