"""Makes a process reach the replicas through relays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from dpone.adapters.cluster import session
from dpone.adapters.connections.connection import Connection


def ports_of(text: str) -> dict[int, int]:
    """``1:2,3:4`` as numbers; none for ``-``."""
    if text == "-":
        return {}
    return {int(before): int(after) for before, _, after in (pair.partition(":") for pair in text.split(","))}


def redirect(ports: Mapping[int, int]) -> None:
    """From now on this process reaches the replicas through relays; what they are called stays the same."""
    opened: Callable[..., AbstractContextManager[Any]] = getattr(session, "opened")  # noqa: B009

    def through_a_relay(connection: Connection, *rest: Any) -> AbstractContextManager[Any]:
        port = connection.port
        return opened(connection if port is None else replace(connection, port=ports.get(port, port)), *rest)

    setattr(session, "opened", through_a_relay)  # noqa: B010
