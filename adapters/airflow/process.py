"""A task's side of the load's process: start it, serve it, log what it says, end it.

Everything happens in the task's main thread. Airflow's signal handler calls :meth:`LoadProcess.end` in the middle of
whatever that thread does, also a second time: it only signals and looks, and never takes a lock of ``subprocess``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..reader.channel import wait_exited
from .frames import Frame, Incoming, encode

COMMAND: Final = ("-P", "-m", "dpone.adapters.airflow.child")
TERM_SECONDS: Final = 3.2
"""How long a stopped load may reap its reader and say what it left. Airflow kills the task 5 s after its SIGTERM."""
KILL_SECONDS: Final = 1.0
LINE_BYTES_MAX: Final = 4 * 1024
LINES_MAX: Final = 20_000
_CHUNK: Final = 65_536
_PASSED_ON: Final = (
    "HOME",
    "JE_MALLOC_CONF",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "TMPDIR",
)

Answer = Callable[[Frame], Frame]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended: its last frame, if it said one, and the status of ``waitpid`` (negative: a signal)."""

    said: Frame | None
    status: int


@dataclass(slots=True)
class LoadProcess:
    """One process in a session of its own. ``command`` is what follows the interpreter."""

    say: Say
    command: Sequence[str] = COMMAND
    _process: subprocess.Popen[bytes] | None = None
    _ended_on_request: bool = False
    _lines: int = 0
    _rest: bytearray = field(default_factory=bytearray)

    def run(self, request: Frame, answer: Answer) -> Ended:
        """Start, send the request, answer what is asked, until the process is gone. Raises OSError.

        Whatever is raised meanwhile (an execution timeout, an interruption), the process is gone afterwards.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                self._start(theirs)
                theirs.close()
                said = self._serve(ours, request, answer)
            finally:
                self.end()
                status = self._reap()
        return Ended(said, status)

    def end(self) -> bool:
        """SIGTERM, then SIGKILL to the whole session's group. True when the process is gone. Right in every state."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        try:
            if self._is_gone(process, 0):
                return True
            if not self._ended_on_request:
                self._ended_on_request = True
                _signal_group(process.pid, signal.SIGTERM)
                self._is_gone(process, TERM_SECONDS)
        finally:
            if process.returncode is None:
                _signal_group(process.pid, signal.SIGKILL)
            gone = self._is_gone(process, KILL_SECONDS)
        return gone

    @property
    def was_asked_to_end(self) -> bool:
        """Whether SIGTERM was sent."""
        return self._ended_on_request

    def _start(self, theirs: socket.socket) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *self.command, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=environment(os.environ),
        )

    def _serve(self, ours: socket.socket, request: Frame, answer: Answer) -> Frame | None:
        """Until the process is gone, whoever else may hold its output open. Returns the frame that was no question."""
        with contextlib.suppress(OSError):  # it is gone already: its output says why
            ours.sendall(encode(request))
        said: Frame | None = None
        incoming, process = Incoming(), self._running()
        output = process.stdout.fileno() if process.stdout is not None else -1
        with selectors.DefaultSelector() as waiting, _noticed(process.pid) as ended:
            for descriptor in (ours.fileno(), output, ended):
                os.set_blocking(descriptor, False)
                waiting.register(descriptor, selectors.EVENT_READ)
            while ready := [key.fd for key, _ in waiting.select(0 if ended not in waiting.get_map() else None)]:
                for descriptor in ready:
                    chunk = b"" if descriptor == ended else _read(descriptor)
                    if not chunk:
                        waiting.unregister(descriptor)
                    elif descriptor == output:
                        self._log(chunk)
                    else:
                        said = self._heard(ours, incoming, chunk, answer) or said
        self._log(b"", last=True)
        return said

    def _heard(self, ours: socket.socket, incoming: Incoming, chunk: bytes, answer: Answer) -> Frame | None:
        for frame in incoming.feed(chunk):
            if "want" not in frame:
                return frame
            with contextlib.suppress(OSError):  # it left without waiting for the answer
                ours.setblocking(True)
                ours.sendall(encode(answer(frame)))
                ours.setblocking(False)
        return None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise OSError("not started")
        return self._process

    def _log(self, chunk: bytes, last: bool = False) -> None:
        self._rest += chunk
        for line in _lines(self._rest, last):
            self._lines += 1
            if self._lines <= LINES_MAX:
                self.say(line)
            elif self._lines == LINES_MAX + 1:
                self.say(f"… more than {LINES_MAX:,} lines: the rest is not shown")

    def _reap(self) -> int:
        process = self._process
        if process is None:
            return -1
        if process.stdout is not None:
            process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(KILL_SECONDS)
        return -1

    @staticmethod
    def _is_gone(process: subprocess.Popen[bytes], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        try:
            return wait_exited(process.pid, lambda: deadline - time.monotonic())
        except ChildProcessError:
            return True  # reaped already


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What Python needs to find its packages. Everything else goes through the channel, for ``/proc`` shows this."""
    passed = {name: environ[name] for name in _PASSED_ON if name in environ}
    if path := environ.get("PYTHONPATH"):
        passed["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in path.split(os.pathsep) if entry)  # noqa: PTH100
    return passed


@contextlib.contextmanager
def _noticed(pid: int) -> Iterator[int]:
    """A descriptor that becomes readable when the process ends."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except ConnectionError:
        return b""


def _lines(rest: bytearray, last: bool) -> Iterator[str]:
    """Whole lines, taken off ``rest``; one that does not end is cut."""
    while (end := rest.find(b"\n")) >= 0 or len(rest) > LINE_BYTES_MAX or (last and rest):
        cut = end if 0 <= end <= LINE_BYTES_MAX else min(len(rest), LINE_BYTES_MAX)
        line = bytes(rest[:cut])
        del rest[: cut + (cut == end)]
        yield line.decode(errors="replace").rstrip("\r")


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
