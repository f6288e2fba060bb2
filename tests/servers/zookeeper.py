"""One ZooKeeper alone, for the tests of a store that needs no ClickHouse."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.cluster_servers.server import free_ports, start_together
from scripts.cluster_servers.zookeeper import ZooKeeper

from .processes import removed

__all__ = ["ZooKeeper", "zookeeper_server"]


@contextlib.contextmanager
def zookeeper_server() -> Iterator[ZooKeeper]:
    """Start one, yield it when sessions work, end it and take its folder away."""
    folder = Path(tempfile.mkdtemp(prefix="dpone-test-zookeeper-"))
    server = ZooKeeper(folder, free_ports(1)[0], dies_with_us=True)
    try:
        start_together([server])
        yield server
    finally:
        server.kill()
        removed(folder)
