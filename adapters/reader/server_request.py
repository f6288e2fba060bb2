"""What the parent hands to a worker that reads servers: the typed plan, where the replicas answer, and who asks.

Credentials are in it, and in nothing else that a worker is given: it travels through the worker's private pipe alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from ...domain.codec import decode, encode, parse_strict
from ...domain.ports import ReadPlan
from ..cluster.session import Endpoint
from ..connections.connection import Connection
from .request import LENGTH_BYTES

_FILES = ("cert_file", "key_file")


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks, on every replica alike; ``params`` is JSON. Files are named by absolute paths."""

    reference: str
    username: str | None
    password: str | None = field(repr=False)
    secure: bool | None
    ca_file: str | None
    params: str
    kind: str | None

    @classmethod
    def of(cls, connection: Connection) -> Access:
        """Everything but where the server is, which the endpoints say."""
        params = {name: _file(value) if name in _FILES else value for name, value in connection.params.items()}
        return cls(
            connection.reference,
            connection.username,
            connection.password,
            connection.secure,
            None if connection.ca_file is None else _file(connection.ca_file),
            json.dumps(params),
            connection.kind,
        )

    def connection(self) -> Connection:
        """As it was, without a host. Raises ValueError."""
        return Connection(
            reference=self.reference,
            host="",
            username=self.username,
            password=self.password,
            secure=self.secure,
            ca_file=self.ca_file,
            params=parse_strict(self.params),
            kind=self.kind,
        )


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """``endpoints``: one for every replica of the plan. ``budget_milliseconds``: what is left at the handing over."""

    nonce: str
    budget_milliseconds: int
    plan: ReadPlan
    endpoints: tuple[Endpoint, ...]
    access: Access


def encode_server_request(request: ServerRequest) -> bytes:
    """The frame."""
    body = json.dumps(encode(request), ensure_ascii=False).encode()
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode_server_request(frame: bytes) -> ServerRequest:
    """Raises ValueError unless it is exactly one frame with every field and no other."""
    body = frame[LENGTH_BYTES:]
    if len(frame) < LENGTH_BYTES or int.from_bytes(frame[:LENGTH_BYTES], "big") != len(body):
        raise ValueError("not one frame")
    return decode(ServerRequest, parse_strict(body))


def _file(path: object) -> str:
    """The worker stands in another folder."""
    return str(Path(str(path)).absolute())
