"""A cluster whose servers write down every statement they finish: their own evidence of how often a swap took place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.cluster_servers.clickhouse import ClickHouseReplica
from scripts.cluster_servers.cluster import free_topology

from tests.servers.cluster import PASSWORDS, Cluster
from tests.servers.processes import removed


@contextmanager
def logged_cluster() -> Iterator[Cluster]:
    """Start one, yield it when it is healthy, end it and take its folder away."""
    folder = Path(tempfile.mkdtemp(prefix="dpone-test-cluster-"))
    made = Cluster(folder, free_topology(PASSWORDS), dies_with_us=True)
    for replica in made.replicas:
        setattr(replica, "prepare", _logging(replica, replica.prepare))  # noqa: B010 - also before every restart
    try:
        made.start()
        yield made
    finally:
        made.end()
        removed(folder)


def _logging(replica: ClickHouseReplica, prepare: Callable[[], None]) -> Callable[[], None]:
    def prepared() -> None:
        prepare()
        users = replica.folder / "users.xml"
        users.write_text(users.read_text().replace("<default><max", "<default><log_queries>1</log_queries><max", 1))

    return prepared
