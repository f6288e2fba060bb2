"""A relay between a client and Keeper that loses replies, loses requests, or delivers a request much too late."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from enum import Enum, auto
from queue import Queue
from time import monotonic, sleep

MOVED = struct.pack(">i", -103)  # what a refused change says: the node has another version
_TRANSACTION = 14  # the number of a multi request in the protocol
_SECONDS = 15.0


class Loss(Enum):
    """What becomes of the next transaction; the client's connection is cut in every case."""

    REPLY = auto()
    REQUEST = auto()
    LATE = auto()


class Relay:
    """Listens on ``port``; ``losses`` are used up one transaction at a time."""

    def __init__(self, upstream: int) -> None:
        self.losses: list[Loss] = []
        self._upstream = upstream
        self._held: list[tuple[socket.socket, bytes]] = []
        self._open: list[socket.socket] = []
        self._late: Queue[bytes] = Queue()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def deliver_late(self) -> list[bytes]:
        """Hand over the requests that were held back, and return what the server answered."""
        answers = []
        for server, frame in self._held:
            server.sendall(frame)
            answers.append(self._late.get(timeout=_SECONDS))
            _cut(server)
        self._held.clear()
        return answers

    def close(self) -> None:
        for opened in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                self._open += [client, server]
                for side in (client, server):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._replies, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            _forward(client, server)  # the greeting has no number
            while frame := _frame(client):
                if self.losses and struct.unpack(">i", frame[8:12])[0] == _TRANSACTION:
                    self._lose(self.losses.pop(0), client, server, frame)
                    return
                server.sendall(frame)
        _cut(client)
        _cut(server)

    def _lose(self, loss: Loss, client: socket.socket, server: socket.socket, frame: bytes) -> None:
        match loss:
            case Loss.REPLY:
                self._open.remove(client)
                _cut(client)  # before the request goes on: no reply can slip through
                server.sendall(frame)
            case Loss.REQUEST:
                _cut(client)
                _cut(server)
            case Loss.LATE:
                self._held.append((server, frame))
                _cut(client)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while frame := _frame(server):
                if any(held is server for held, _ in self._held):
                    self._late.put(frame)
                else:
                    client.sendall(frame)
        _cut(client)


@contextlib.contextmanager
def relay_to(upstream: int) -> Iterator[Relay]:
    relay = Relay(upstream)
    try:
        yield relay
    finally:
        relay.close()


def wait_until(condition: Callable[[], bool], seconds: float = _SECONDS) -> None:
    """Poll a callable until it is true."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)


def _forward(source: socket.socket, sink: socket.socket) -> None:
    if frame := _frame(source):
        sink.sendall(frame)


def _frame(source: socket.socket) -> bytes:
    head = _exactly(source, 4)
    return head + _exactly(source, struct.unpack(">i", head)[0]) if head else b""


def _exactly(source: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        part = source.recv(size - len(got))
        if not part:
            return b""
        got += part
    return got


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
