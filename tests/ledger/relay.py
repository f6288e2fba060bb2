"""A relay on loopback between a client and a server, which can cut what it was told to or fall silent."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """``lose_reply``: the next request that holds this text arrives, its answer does not, and the connection ends.
    ``lose_request``: not even the request. ``silent``: nothing passes in either direction."""

    def __init__(self, upstream: int) -> None:
        self.lose_reply = b""
        self.lose_request = b""
        self.silent = False
        self.lost = 0
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                self._open += [client, server]
                answering = threading.Event()
                answering.set()
                threading.Thread(target=self._requests, args=(client, server, answering), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client, answering), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, answering: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                if self.silent:
                    continue
                if self.lose_request and self.lose_request in data:
                    self.lose_request, self.lost = b"", self.lost + 1
                    break
                if self.lose_reply and self.lose_reply in data:
                    self.lose_reply, self.lost = b"", self.lost + 1
                    answering.clear()
                server.sendall(data)
        self._cut(client, server)

    def _answers(self, server: socket.socket, client: socket.socket, answering: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                if not answering.is_set():
                    break  # it was done, and nobody hears of it
                if not self.silent:
                    client.sendall(data)
        self._cut(client, server)

    @staticmethod
    def _cut(*both: socket.socket) -> None:
        for one in both:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
