"""One process at a time: who holds the folder is said, and it is waited for within a bound."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform, folder
from dpone.domain.errors import EngineBusy

_HOLD = """
import sys, time
from pathlib import Path
from dpone.adapters.clickhouse import EmbeddedPlatform
EmbeddedPlatform(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(float(sys.argv[2]))
import os; os._exit(0)
"""

Hold = Callable[[Path, float], subprocess.Popen[str]]


@pytest.fixture
def hold() -> Iterator[Hold]:
    processes: list[subprocess.Popen[str]] = []

    def start(place: Path, seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _HOLD, str(place), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=10)


def test_the_holder_is_named(tmp_path: Path, hold: Hold) -> None:
    holder = hold(tmp_path, 30)
    started = time.monotonic()
    with pytest.raises(EngineBusy) as caught:
        EmbeddedPlatform(tmp_path, wait_seconds=0.3).acquire()
    assert 0.3 <= time.monotonic() - started < 2
    assert f"process {holder.pid} (python" in caught.value.what
    assert caught.value.known == {"holder_pid": holder.pid}
    assert str(tmp_path) not in caught.value.what


def test_a_holder_that_leaves_is_waited_for(tmp_path: Path, hold: Hold) -> None:
    hold(tmp_path, 0.5)
    platform = EmbeddedPlatform(tmp_path, wait_seconds=10)
    platform.acquire()
    assert folder.seen_holder(tmp_path) == _this_process()
    platform.release()
    assert folder.seen_holder(tmp_path) is None


def test_a_killed_holder_leaves_no_lock(tmp_path: Path, hold: Hold) -> None:
    hold(tmp_path, 30).kill()
    platform = EmbeddedPlatform(tmp_path, wait_seconds=10)
    platform.acquire()
    assert folder.seen_holder(tmp_path) == _this_process()
    platform.release()


def _this_process() -> folder.Holder:
    return folder.Holder(os.getpid(), Path("/proc/self/comm").read_text().strip())


def test_a_holder_that_the_kernel_does_not_show_is_another_process(
    tmp_path: Path, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(tmp_path, 30)
    monkeypatch.setattr(folder, "seen_holder", lambda _: None)
    with pytest.raises(EngineBusy, match="in use by another process"):
        EmbeddedPlatform(tmp_path, wait_seconds=0.2).acquire()


def test_a_second_platform_in_the_process_is_refused_at_once(tmp_path: Path, platform: EmbeddedPlatform) -> None:
    platform.acquire()
    platform.acquire()
    for place in (tmp_path / "engine", tmp_path / "elsewhere"):
        with pytest.raises(EngineBusy, match="this process itself"):
            EmbeddedPlatform(place, wait_seconds=10).acquire()
    platform.release()
    other = EmbeddedPlatform(tmp_path / "elsewhere")
    other.acquire()
    other.release()
