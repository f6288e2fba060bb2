"""The replicated cluster of the tests: two ClickHouse 18.16 and one ZooKeeper on free ports, in their own folder."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from scripts.cluster_servers.clickhouse import ClickHouseReplica
from scripts.cluster_servers.cluster import Cluster, free_topology
from scripts.cluster_servers.configuration import Passwords

from .processes import removed

__all__ = ["PASSWORDS", "ClickHouseReplica", "Cluster", "cluster", "unique_database"]

PASSWORDS = Passwords(
    dpone="s3cr3t-c4n4ry-cluster", dpone_reader="s3cr3t-c4n4ry-reader", source_reader="s3cr3t-c4n4ry-source"
)


@contextlib.contextmanager
def cluster(databases: tuple[str, ...] = ()) -> Iterator[Cluster]:
    """Start one, yield it when it is healthy, end it and take its folder away.

    ``databases``: the only ones that ``dpone`` and ``dpone_reader`` may use; none named: all.
    """
    folder = Path(tempfile.mkdtemp(prefix="dpone-test-cluster-"))
    made = Cluster(folder, free_topology(PASSWORDS, databases), dies_with_us=True)
    try:
        made.start()
        yield made
    finally:
        made.end()
        removed(folder)


@contextlib.contextmanager
def unique_database(made: Cluster) -> Iterator[str]:
    """A database of a new name on every replica, dropped afterwards; both directly, replica by replica."""
    name = f"t_{uuid4().hex[:12]}"
    for replica in made.replicas:
        replica.execute(f"CREATE DATABASE {name}")
    try:
        yield name
    finally:
        made.start()
        for replica in made.replicas:
            with contextlib.suppress(Exception):  # a table that lost its Keeper path cannot be dropped, only left
                replica.execute(f"DROP DATABASE IF EXISTS {name}")
