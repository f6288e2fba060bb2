"""What ZooKeeper and ClickHouse have in common here: a folder, a process, and signs of life."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import ClassVar, Final

from .process import ServerProcess, uninterrupted

_STARTS: Final = 4  # about one start in fifty of the old ClickHouse aborts or hangs
_POLL_SECONDS: Final = 0.05
_PORTS: Final = range(20_000, 32_000)  # below the range that the system gives to outgoing connections


class NotStarted(Exception):
    """A server did not come up; its log says why."""


class Server(ABC):
    """One server on loopback. Ports and folder stay the same over every ``start``."""

    READY_SECONDS: ClassVar[float]

    def __init__(self, name: str, folder: Path, *, dies_with_us: bool) -> None:
        self.name = name
        self.folder = folder
        self.dies_with_us = dies_with_us
        self.process: ServerProcess | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The words that start it."""

    @abstractmethod
    def prepare(self) -> None:
        """Make its folders and write its configuration."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it does its work now; answers within about two seconds."""

    @property
    @abstractmethod
    def ports(self) -> tuple[int, ...]:
        """Where it listens, the one for its clients first."""

    @property
    def data(self) -> Path:
        """What the server itself keeps."""
        return self.folder / "data"

    @property
    def is_alive(self) -> bool:
        """Whether its process is there (a frozen one is)."""
        return self.process is not None and self.process.is_alive

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.prepare()
        with uninterrupted():
            self.process = ServerProcess.started(self.command(), self.folder, dies_with_us=self.dies_with_us)
            self._process_file.write_text(f"{self.process.pid} {self.process.began}\n")

    def attach(self) -> None:
        """Take over the process that an earlier program started, when its folder names one."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            pid, began = map(int, self._process_file.read_text().split())
            self.process = ServerProcess(pid, began)

    @property
    def _process_file(self) -> Path:
        return self.folder / "process"

    def start(self, *, empty: bool = False) -> None:
        """Start again after ``kill`` or ``stop`` and wait until it is ready; ``empty``: without its data.

        Raises NotStarted.
        """
        if self.is_alive:
            return
        if empty:
            shutil.rmtree(self.data, ignore_errors=True)
        start_together([self])

    def wait_ready(self, seconds: float = 30.0) -> None:
        """Wait until it does its work again, after ``thaw`` or after its Keeper came back. Raises NotStarted."""
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > deadline or not self.is_alive:
                raise NotStarted(f"{self.name} is not ready after {seconds:g} s")
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """End it at once, as a power cut would; returns when it is gone."""
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it end by itself; returns when it is gone."""
        self.end(signal.SIGTERM)

    def end(self, how: int) -> None:
        """``kill`` or ``stop``."""
        if self.process is not None:
            self.process.end(how)

    def freeze(self) -> None:
        """Let it stand still: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen one go on; nothing happens to another."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send(number)


def start_together(servers: Sequence[Server]) -> None:
    """Start all at once and wait until each is ready; what aborts or hangs is started again. Raises NotStarted."""
    waiting = {server: _launched(server) for server in servers}
    starts = dict.fromkeys(servers, 1)
    while waiting:
        for server, deadline in tuple(waiting.items()):
            if server.is_ready():
                del waiting[server]
            elif not server.is_alive or time.monotonic() > deadline:
                server.kill()
                if starts[server] == _STARTS:
                    raise NotStarted(f"{server.name} did not start; see {server.folder.name}/server.log and its log")
                starts[server] += 1
                waiting[server] = _launched(server)
        time.sleep(_POLL_SECONDS)


def _launched(server: Server) -> float:
    server.launch()
    return time.monotonic() + server.READY_SECONDS


def free_ports(count: int) -> list[int]:
    """Distinct loopback ports that nobody uses at the moment and that no outgoing connection will take."""
    probes: list[socket.socket] = []
    try:
        for port in SystemRandom().sample(_PORTS, len(_PORTS)):
            if len(probes) == count:
                break
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                probe.close()
                continue
            probes.append(probe)
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
