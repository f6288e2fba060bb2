"""A worker's own side of its pipes, and of dying with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import time

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Ask for SIGKILL when the parent ends; look afterwards whether it ended before that was asked."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def say_ready(descriptor: int) -> None:
    """With the time, so that the parent need not watch."""
    write(descriptor, time.monotonic_ns().to_bytes(8, "big"))


def read(descriptor: int) -> bytes:
    """Everything, until the other side closes."""
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def write(descriptor: int, data: bytes) -> None:
    """Everything, then the end of the channel."""
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
