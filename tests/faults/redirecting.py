"""Makes a process reach the replicas through relays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from dpone.adapters.cluster import session
from dpone.adapters.connections.clickhouse import opened
from dpone.adapters.connections.connection import Connection


def ports_of(text: str) -> dict[int, int]:
    """``1:2,3:4`` as numbers; none for ``-``."""
    if text == "-":
        return {}
    return {int(before): int(after) for before, _, after in (pair.partition(":") for pair in text.split(","))}


def through_relays(ports: Mapping[int, int]) -> Callable[..., AbstractContextManager[Any]]:
    """What opens a connection, by the relay of its port; what the server is called stays the same."""

    def through_a_relay(connection: Connection, *rest: Any) -> AbstractContextManager[Any]:
        port = connection.port
        return opened(connection if port is None else replace(connection, port=ports.get(port, port)), *rest)

    return through_a_relay


def redirect(ports: Mapping[int, int]) -> None:
    """From now on this process reaches the replicas through relays."""
    patch.object(session, "opened", through_relays(ports)).start()
