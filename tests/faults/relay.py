"""A TCP relay on loopback between this product and one server, which does to one request what a bad network does.

It knows no protocol: a request is what the client sends at once, and the one that is meant is found by its text.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from enum import StrEnum
from queue import Queue
from typing import Final

When = Callable[[bytes], bool]
"""Whether this is the request that is meant."""
_CHUNK: Final = 1 << 16
_DRAIN_SECONDS: Final = 15.0
_MIDDLE_BYTES: Final = 4_096
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset, and what is still unsent is thrown away."""


class Cut(StrEnum):
    """What becomes of the request that was meant, and of its connection. Others pass, also on other connections."""

    BEFORE = "cut before the request"
    AFTER = "cut after the request, before the reply"
    UNHEARD = "cut when it is done, and the reply is lost"
    SILENT = "reply later than every timeout"
    HALF_OPEN = "half-open: the server's side is gone, and nobody says so"
    MIDDLE = "reset in the middle of a block"
    TRUNCATED = "reply cut short"
    GARBAGE = "reply replaced by garbage"
    LATE = "cut, and the request arrives when a test says so"


class Relay:
    """Listens on ``port``. ``hits`` counts the requests that were cut; ``down`` refuses every connection; while it is
    ``silent`` nothing passes in either direction."""

    def __init__(self, upstream: int, seed: int = 0) -> None:
        self.hits = 0
        self.down = False
        self.silent = False
        self.seen: list[bytes] | None = None
        self._upstream = upstream
        self._random = random.Random(seed)
        self._armed: list[tuple[Cut, When]] = []
        self._held: list[tuple[_Link, bytes]] = []
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="relay", daemon=True).start()

    def arm(self, cut: Cut, when: When) -> None:
        """Do this to the next request that is meant, once; what is armed later waits until that has happened."""
        with self._lock:
            self._armed.append((cut, when))

    @property
    def armed(self) -> int:
        """How many cuts are still to come."""
        return len(self._armed)

    def deliver_late(self) -> list[bytes]:
        """Hand over the requests that were held back, and return what the server answered."""
        held, self._held = self._held, []
        return [link.deliver(data) for link, data in held]

    def hold(self, link: _Link, data: bytes) -> None:
        self._held.append((link, data))

    def disarm(self) -> None:
        """Let everything pass, and end the connections that were left without an answer."""
        with self._lock:
            self._armed.clear()
        self.down = self.silent = False
        self.cut_all()

    def cut_all(self) -> None:
        """End every connection that is open now, as a switch does that restarts."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()

    def close(self) -> None:
        """End everything; idempotent."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def take(self, data: bytes) -> Cut | None:
        """What to do to this request: used up by being asked."""
        if self.seen is not None:
            self.seen.append(data)
        with self._lock:
            if not self._armed or not self._armed[0][1](data):
                return None
            self.hits += 1
            return self._armed.pop(0)[0]

    def garbage(self, size: int) -> bytes:
        """Bytes that nobody meant, the same for the same seed."""
        return self._random.randbytes(size)

    def forget(self, link: _Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.down:
                    _reset(client)
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self._upstream), timeout=2)
                except OSError:
                    client.close()
                    continue
                server.settimeout(None)
                link = _Link(self, client, server)
                with self._lock:
                    self._links.add(link)
                link.start()


class _Link:
    """One connection: a thread for each direction."""

    def __init__(self, relay: Relay, client: socket.socket, server: socket.socket) -> None:
        self._relay = relay
        self._client = client
        self._server = server
        self._replying: Cut | None = None
        self._middle: int | None = None
        self._late: Queue[bytes] = Queue()
        self._both = threading.Semaphore(0)
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for work in (self._requests, self._replies, self._close):
            threading.Thread(target=work, name="relay", daemon=True).start()

    def deliver(self, data: bytes) -> bytes:
        """Send what was held back; the server's answer."""
        self._server.sendall(data)
        answer = self._late.get(timeout=_DRAIN_SECONDS)
        self.cut()
        return answer

    def cut(self) -> None:
        """End both sides in the ordinary way."""
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        self._both.acquire()
        self._both.acquire()
        self._client.close()
        self._server.close()
        self._relay.forget(self)

    def _requests(self) -> None:
        try:
            with contextlib.suppress(OSError):
                while data := self._client.recv(_CHUNK):
                    if not self._pass_on(data):
                        return
            if self._replying not in (Cut.AFTER, Cut.MIDDLE, Cut.LATE):
                self.cut()
        finally:
            self._both.release()

    def _pass_on(self, data: bytes) -> bool:
        """Hand a request to the server, or do to it what was asked; False when this direction is over."""
        if self._relay.silent:
            return True
        if self._middle is not None:
            return self._until_the_middle(data)
        match self._relay.take(data):
            case None:
                self._server.sendall(data)
                return True
            case Cut.BEFORE:
                self.cut()
                return False
            case Cut.AFTER:
                self._replying = Cut.AFTER
                self._client.shutdown(socket.SHUT_RDWR)  # before the request goes on: no reply can slip through
                self._server.sendall(data)
                return False
            case Cut.LATE:
                self._replying = Cut.LATE
                self._relay.hold(self, data)
                self._client.shutdown(socket.SHUT_RDWR)
                return False
            case Cut.HALF_OPEN:
                self._replying = Cut.HALF_OPEN
                self._server.shutdown(socket.SHUT_RDWR)
                return self._listen_in_vain()
            case Cut.MIDDLE:
                self._middle = _MIDDLE_BYTES
                return self._until_the_middle(data)
            case Cut.UNHEARD | Cut.SILENT | Cut.TRUNCATED | Cut.GARBAGE as cut:
                self._replying = cut
                self._server.sendall(data)
                return True

    def _until_the_middle(self, data: bytes) -> bool:
        """Some bytes more, then a reset to both. A request that is smaller than that is cut in its own middle."""
        left = self._middle or 0
        small = len(data) < left and len(data) < 1_024
        self._server.sendall(data if small else data[: min(left, len(data) // 2 + 1)])
        self._middle = left - len(data)
        if small and self._middle > 0:
            return True
        self._replying = Cut.MIDDLE
        for side in (self._client, self._server):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            side.shutdown(socket.SHUT_RD)  # sends nothing, and ends both threads: then closing sends the reset
        return False

    def _listen_in_vain(self) -> bool:
        while self._client.recv(_CHUNK):
            continue
        return False

    def _replies(self) -> None:
        try:
            with contextlib.suppress(OSError):
                while data := self._server.recv(_CHUNK):
                    if not self._answer(data):
                        break
            if self._replying not in (Cut.HALF_OPEN, Cut.MIDDLE):
                self.cut()
        finally:
            self._both.release()

    def _answer(self, data: bytes) -> bool:
        """Hand a reply to the client, or what became of it."""
        match self._replying:
            case None:
                if not self._relay.silent:
                    self._client.sendall(data)
                return True
            case Cut.UNHEARD:
                return False
            case Cut.LATE:
                self._late.put(data)
                return True
            case Cut.AFTER:
                self._server.settimeout(_DRAIN_SECONDS)  # the server must be able to finish what it was told
                return True
            case Cut.TRUNCATED:
                self._client.sendall(data[: len(data) // 2])
                return False
            case Cut.GARBAGE:
                self._client.sendall(self._relay.garbage(len(data)))
                return False
            case _:
                return True


def _reset(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        side.close()


@contextlib.contextmanager
def relay_to(upstream: int, seed: int = 0) -> Iterator[Relay]:
    """A relay to a loopback port, ended afterwards."""
    relay = Relay(upstream, seed)
    try:
        yield relay
    finally:
        relay.close()
