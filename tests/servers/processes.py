"""A server process of the tests: its own folder and port, ended by its id and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.cluster_servers.process import popen

READY_SECONDS = 8.0
STOP_SECONDS = 10.0


def free_port() -> int:
    """A loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(
    command: Sequence[str],
    folder: Path,
    is_ready: Callable[[], bool],
    user: str | None = None,
    seconds: float = READY_SECONDS,
) -> subprocess.Popen[bytes] | None:
    """A process in a session of its own that answers, or None when it ended or stayed silent (and was ended).

    It dies with this process, also when that is killed.
    """
    process = popen(command, folder, dies_with_us=True, user=user)
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if is_ready():
            return process
        time.sleep(0.05)
    stop(process)
    return None


def stop(process: subprocess.Popen[bytes], how: int = signal.SIGKILL) -> None:
    """End a process and everything in its session, and reap it."""
    for number in (how, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(STOP_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue


def unprivileged() -> str | None:
    """A user that may run PostgreSQL when the tests run as root; None: the present one may."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


def removed(folder: Path) -> None:
    """Take a server's folder away."""
    shutil.rmtree(folder, ignore_errors=True)
