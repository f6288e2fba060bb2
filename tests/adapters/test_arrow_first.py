"""Arrow's package is imported by the main thread, before another thread of this program runs.

While it is imported, ``isinstance("text", Mapping)`` may be true in another thread, and then stays true.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

_WATCHED = """
import json, sys, threading
seen = []
sys.addaudithook(lambda event, args: seen.append(threading.current_thread() is threading.main_thread())
                 if event == "import" and args[0] == "pyarrow.lib" else None)
"""
_EMBEDDED = """
from pathlib import Path
from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
platform = EmbeddedPlatform(Path(sys.argv[1]))
platform.prepare("db")
platform.acquire()
platform.release()
"""
_CLUSTER = """
from dpone.adapters.cluster import platform
from dpone.adapters.cluster.session import Endpoint
platform.Ahead = lambda work: seen.append("pyarrow.lib" in sys.modules)
endpoint = Endpoint("replica_1", "127.0.0.1", 1)
platform.ReplicatedPlatform(None, [endpoint], "cluster", "id").prepare("db")
"""


def said(script: str, *words: str) -> list[bool]:
    """What was seen, in a process where nothing is imported yet."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_WATCHED}{script}\nprint(json.dumps(seen))", *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: list[bool] = json.loads(done.stdout)
    return found


def test_the_engine_is_not_what_imports_it(tmp_path: Path) -> None:
    pytest.importorskip("chdb")
    seen = said(_EMBEDDED, str(tmp_path / "data"))
    assert seen
    assert all(seen)


def test_it_is_there_before_a_cluster_is_probed() -> None:
    seen = said(_CLUSTER)
    assert len(seen) > 1, "it was imported, and the probe began"
    assert all(seen)
