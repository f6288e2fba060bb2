"""One worker process with its three private pipes: plan in, ready and reply out."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from .channel import Expired, Remaining, read_to_end, wait_exited, write_all

_READY_BYTES = 8
_TERM_SECONDS_MAX = 0.5
_PASSED_ON = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONPYCACHEPREFIX",
    "TMPDIR",
)


class SpawnedWorker:
    """A process in a session and group of its own, without the parent's environment, terminal or current folder.

    ``end`` is right in every state, also when ``spawn`` was interrupted half-way: a worker that nobody knows finds its
    plan's pipe closed and leaves.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._process: subprocess.Popen[bytes] | None = None
        self._open: set[int] = set()
        self._plan = self._ready = self._reply = -1
        self.spawned_at = monotonic()

    def spawn(self, command: Sequence[str]) -> None:
        """Start the process. Raises OSError."""
        plan_there, self._plan = self._pipe()
        self._ready, ready_there = self._pipe()
        self._reply, reply_there = self._pipe()
        theirs = (plan_there, ready_there, reply_there)
        self.spawned_at = self._monotonic()
        self._process = subprocess.Popen(
            [*command, *map(str, theirs), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=theirs,
            start_new_session=True,
            cwd="/",
            env=_environment(),
        )
        for descriptor in theirs:
            self._close(descriptor)

    def has_ended(self) -> bool:
        """Whether the process is gone (it may not be reaped yet)."""
        return self._process is None or wait_exited(self._process.pid, lambda: 0.0)

    def wait_ready(self, remaining: Remaining) -> float:
        """The monotonic second at which the worker says it was ready. Raises Expired; OSError when it ended instead."""
        said = read_to_end(self._ready, _READY_BYTES, remaining)
        if len(said) != _READY_BYTES:
            raise BrokenPipeError
        return int.from_bytes(said, "big") / 1e9

    def hand_over(self, request: bytes, remaining: Remaining) -> None:
        """Write the plan and close its pipe. Raises Expired, OSError."""
        write_all(self._plan, request, remaining)
        self._close(self._plan)

    def read_reply(self, bytes_max: int, remaining: Remaining) -> bytes:
        """Everything that comes until the pipe's end, or one byte too much. Raises Expired."""
        return read_to_end(self._reply, bytes_max, remaining)

    def ends_cleanly(self, remaining: Remaining) -> bool:
        """Whether the process ends with 0. Raises Expired."""
        if self._process is None:
            return False
        if not wait_exited(self._process.pid, remaining):
            raise Expired
        _signal_group(
            self._process.pid, signal.SIGKILL
        )  # its number is still taken by the unreaped worker; strays end with it
        return self._process.wait() == 0

    def end(self, seconds: float) -> bool:
        """Revoke the channels, end the process group, reap the worker. False when it is not gone after ``seconds``."""
        for descriptor in tuple(self._open):
            self._close(descriptor)
        process = self._process
        if process is None or process.returncode is not None:
            return True
        deadline = time.monotonic() + seconds
        try:
            _signal_group(process.pid, signal.SIGTERM)
            patience = min(deadline, time.monotonic() + _TERM_SECONDS_MAX)
            wait_exited(process.pid, lambda: patience - time.monotonic())
        finally:  # also when a signal's handler raises meanwhile
            _signal_group(process.pid, signal.SIGKILL)
            gone = wait_exited(process.pid, lambda: deadline - time.monotonic())
            if gone:
                process.wait()
        return gone

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _environment() -> dict[str, str]:
    """What Python needs to find its packages, and nothing else: no connection, no secret of the parent's."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if path := os.environ.get("PYTHONPATH"):
        passed["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in path.split(os.pathsep) if entry)  # noqa: PTH100
    return passed
