"""The private channel between a task and its load's process: JSON objects, each after its length in four bytes.

The task sends one request, then an answer to each connection that is asked for. The process asks with ``{"want":
reference}`` and ends with ``{"document": …, "exit_code": …}``.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""More than the largest document: three observations of 256 columns, 64 gates, bounded sentences."""
_HEAD: Final = 4

Frame = dict[str, Any]


class FrameInvalid(Exception):
    """The other side sent something that is no frame."""


def encode(frame: Frame) -> bytes:
    """The bytes of one frame. Raises FrameInvalid when it would be too large."""
    body = json.dumps(frame, ensure_ascii=False, allow_nan=False).encode()
    if len(body) > FRAME_BYTES_MAX:
        raise FrameInvalid
    return len(body).to_bytes(_HEAD, "big") + body


@dataclass(slots=True)
class Incoming:
    """Bytes as they come, frames as they are complete."""

    held: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that this chunk completes. Raises FrameInvalid."""
        self.held += chunk
        while len(self.held) >= _HEAD:
            length = int.from_bytes(self.held[:_HEAD], "big")
            if length > FRAME_BYTES_MAX:
                raise FrameInvalid
            if len(self.held) < _HEAD + length:
                return
            body = bytes(self.held[_HEAD : _HEAD + length])
            del self.held[: _HEAD + length]
            yield _object(body)


def send(channel: socket.socket, frame: Frame) -> None:
    """Send one frame. Raises OSError when the other side is gone."""
    channel.sendall(encode(frame))


def receive(channel: socket.socket) -> Frame:
    """Wait for one frame. Raises FrameInvalid, also for the end of the channel; OSError."""
    length = int.from_bytes(_exactly(channel, _HEAD), "big")
    if length > FRAME_BYTES_MAX:
        raise FrameInvalid
    return _object(_exactly(channel, length))


def _exactly(channel: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = channel.recv(count - len(received))
        if not chunk:
            raise FrameInvalid
        received += chunk
    return bytes(received)


def _object(body: bytes) -> Frame:
    try:
        frame = json.loads(body)
    except ValueError:
        raise FrameInvalid from None
    if not isinstance(frame, dict):
        raise FrameInvalid
    return frame
