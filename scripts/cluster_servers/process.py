"""A server process: known by its id and its start time, so that a reused id is never signalled."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_STOP_SECONDS: Final = 10.0
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM)
_SPAWNING: Final = threading.Lock()
_spawner: ThreadPoolExecutor | None = None


def popen(
    command: Sequence[str], folder: Path, *, dies_with_us: bool, user: str | None = None
) -> subprocess.Popen[bytes]:
    """Start ``command`` in ``folder`` and in a session of its own; what it prints goes to ``server.log`` there.

    ``dies_with_us``: the kernel kills it when this process ends, however that ends. Raises OSError.
    """

    def start() -> subprocess.Popen[bytes]:
        with (folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=user,
                preexec_fn=_prepared(os.getpid() if dies_with_us else None),
            )

    # The signal follows the *thread* that started the child: only one that lives as long as the process will do.
    return _lasting_thread().submit(start).result() if dies_with_us else start()


def _lasting_thread() -> ThreadPoolExecutor:
    global _spawner
    with _SPAWNING:
        if _spawner is None:
            _spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        return _spawner


def _prepared(parent: int | None) -> Callable[[], None]:
    """What the child does before it becomes the server; ``parent``: the process that it shall die with."""

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
        if parent is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the arming
            os._exit(1)

    return prepare


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait: between starting a process and writing down which, they would lose it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_time(pid: int) -> int | None:
    """When the process began, in clock ticks after the machine's boot; None when it is gone."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def _stat(pid: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` from the third on (proc_pid_stat(5)); None when the process is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields


@dataclass(slots=True)
class ServerProcess:
    """One process, perhaps started by an earlier program; ``child`` when this one has to reap it."""

    pid: int
    began: int
    child: subprocess.Popen[bytes] | None = None

    @classmethod
    def started(cls, command: Sequence[str], folder: Path, *, dies_with_us: bool) -> ServerProcess:
        """Start it. Raises OSError."""
        child = popen(command, folder, dies_with_us=dies_with_us)
        return cls(child.pid, start_time(child.pid) or 0, child)

    @property
    def is_alive(self) -> bool:
        """Whether the very same process is there; a frozen one is."""
        if self.child is not None and self.child.poll() is not None:
            return False
        return start_time(self.pid) == self.began

    @property
    def is_frozen(self) -> bool:
        """Whether SIGSTOP holds it."""
        fields = _stat(self.pid)
        return self.is_alive and fields is not None and fields[0] in "Tt"

    @property
    def memory_mib(self) -> int:
        """Resident memory; 0 when it is gone."""
        fields = _stat(self.pid)
        return 0 if fields is None else int(fields[21]) * resource.getpagesize() // 2**20

    def send(self, number: int) -> None:
        """Send a signal; nothing happens when the process is gone."""
        with contextlib.suppress(ProcessLookupError), self._descriptor() as descriptor:
            if self.is_alive:  # asked while the descriptor holds the process: the id cannot change hands now
                signal.pidfd_send_signal(descriptor, number)

    def end(self, how: int = signal.SIGKILL) -> None:
        """Ask it to end (SIGTERM) or end it (SIGKILL), also when frozen, and wait until it is gone.

        Raises RuntimeError when even SIGKILL leaves it there.
        """
        for number in (how, signal.SIGKILL):
            self.send(number)
            self.send(signal.SIGCONT)
            if self._is_gone_within(_STOP_SECONDS):
                return
        raise RuntimeError(f"process {self.pid} does not end")

    def _is_gone_within(self, seconds: float) -> bool:
        with contextlib.suppress(ProcessLookupError), self._descriptor() as descriptor:
            if self.is_alive:
                gone = select.poll()
                gone.register(descriptor, select.POLLIN)
                gone.poll(seconds * 1000)
        if self.child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(0.1)
        return not self.is_alive

    @contextlib.contextmanager
    def _descriptor(self) -> Iterator[int]:
        descriptor = os.pidfd_open(self.pid)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
