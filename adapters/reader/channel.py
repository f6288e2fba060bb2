"""Pipes with a deadline: no call here waits longer than it was told, and a signal handler that raises ends each."""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from collections.abc import Callable

Remaining = Callable[[], float]
"""Seconds left of a budget; zero or less: none."""


_PAUSE_SECONDS_MAX = 0.002  # a worker takes some 30 ms to end, and a load waits for it


class Expired(Exception):
    """The budget ran out while waiting."""


def write_all(descriptor: int, data: bytes, remaining: Remaining) -> None:
    """Write everything. Raises Expired; BrokenPipeError when nobody reads."""
    os.set_blocking(descriptor, False)
    view = memoryview(data)
    while view:
        _wait(descriptor, select.POLLOUT, remaining)
        with contextlib.suppress(BlockingIOError):
            view = view[os.write(descriptor, view) :]


def read_to_end(descriptor: int, bytes_max: int, remaining: Remaining) -> bytes:
    """Read until the end of file, or until more than ``bytes_max`` bytes have come. Raises Expired."""
    os.set_blocking(descriptor, False)
    received = bytearray()
    while len(received) <= bytes_max:
        _wait(descriptor, select.POLLIN, remaining)
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                break
            received += chunk
    return bytes(received)


def wait_exited(pid: int, remaining: Remaining) -> bool:
    """Wait until the child has ended, without reaping it, so that its process group's number stays its own."""
    pause = 0.0005
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        left = remaining()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, _PAUSE_SECONDS_MAX)
    return True


def _wait(descriptor: int, event: int, remaining: Remaining) -> None:
    left = remaining()
    poll = select.poll()
    poll.register(descriptor, event)
    if left <= 0 or not poll.poll(math.ceil(left * 1000)):
        raise Expired
