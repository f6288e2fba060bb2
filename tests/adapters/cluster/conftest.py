"""A real replicated cluster, the platform on it, and the names of one generation after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.cluster.bounds import Bounds
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.adapters.cluster.session import Endpoint
from dpone.adapters.connections import Connection
from dpone.domain.names import arm_name, candidate_name, predecessor_name
from dpone.domain.ports import Swap, SwapForm
from dpone.domain.tables import Column, TableDefinition, TableIdentity, TargetRef
from tests.servers.cluster import PASSWORDS
from tests.servers.sessions import breakable_cluster, cluster_database, replicated_cluster

__all__ = ["breakable_cluster", "cluster_database", "replicated_cluster"]

QUICK = Bounds(connect=2.0, look=2.0, statement=5.0, everywhere=5, insert=10.0, scan=5.0, synchronise=25.0)
COLUMNS = (Column("a", "Int64"), Column("b", "Nullable(String)"))
DEFINITION = TableDefinition(COLUMNS, "ReplicatedMergeTree", ("a",))


@dataclass(slots=True)
class Target:
    """One target table ``t`` in a database of its own, and what a test does to it."""

    platform: ReplicatedPlatform
    database: str
    cluster: Cluster
    table: str = "t"
    known: dict[str, TableIdentity] = field(default_factory=dict)

    @property
    def ref(self) -> TargetRef:
        return TargetRef("platform", self.database, self.table)

    def candidate(self, definition: TableDefinition = DEFINITION, rows: int = 0) -> str:
        """Create the candidate of a new generation, holding so many rows on every replica."""
        name = candidate_name(self.table, uuid4().hex, 1, 1)
        self.platform.create(self.database, name, definition)
        if rows:
            self.insert(name, rows)
        return name

    def insert(self, name: str, rows: int) -> None:
        replica = self.cluster.replicas[0]
        replica.execute(f"INSERT INTO {self.database}.{name} VALUES", [(n, f"row {n}") for n in range(rows)])
        self.platform.synchronise(self.database, name)

    def swap(self, candidate: str, form: SwapForm, replicas: tuple[str, ...] = ()) -> Swap:
        """What a publication of this candidate sends."""
        generation = self.generation(candidate)
        return Swap(
            self.database,
            self.table,
            candidate,
            arm_name(self.table, generation, 1, 1),
            predecessor_name(self.table, generation),
            form,
            replicas,
        )

    def generation(self, candidate: str) -> str:
        return candidate.removeprefix(f"__dpone_{self.table}_")[:32]

    def publish_first(self, definition: TableDefinition = DEFINITION, rows: int = 0) -> TableIdentity:
        """A live table; its identity."""
        candidate = self.candidate(definition, rows)
        self.platform.swap(self.swap(candidate, SwapForm.FIRST))
        return self.tables()[0][self.table]

    def tables(self) -> list[dict[str, TableIdentity]]:
        """By replica, in order of their names."""
        looks = self.platform.look(self.ref)
        assert all(look.reachable for look in looks)
        return [dict(look.tables) for look in looks]

    def names(self) -> list[list[str]]:
        """By replica, the shortened names of what is there: ``t``, ``c``, ``a``, ``p``."""
        return [sorted(_short(name) for name in tables) for tables in self.tables()]


def _short(name: str) -> str:
    return name.rsplit("_", 2)[1][:1] if name.startswith("__dpone_") and not name.endswith("_pred") else name[-4:]


def platform_on(cluster: Cluster, bounds: Bounds = QUICK, name: str | None = None) -> ReplicatedPlatform:
    """As the product's own user, with a password."""
    connection = Connection("replay_target", "127.0.0.1", username="dpone", password=PASSWORDS.dpone)
    endpoints = [Endpoint(replica.name, "127.0.0.1", replica.port) for replica in cluster.replicas]
    return ReplicatedPlatform(connection, endpoints, name or cluster.name, str(uuid4()), bounds)


@pytest.fixture
def target(replicated_cluster: Cluster, cluster_database: str) -> Target:
    return Target(platform_on(replicated_cluster), cluster_database, replicated_cluster)


@pytest.fixture
def breakable(breakable_cluster: Cluster, cluster_database: str) -> Target:
    """As ``target``, on servers that the test may freeze or kill."""
    return Target(platform_on(breakable_cluster), cluster_database, breakable_cluster)


def eventually(holds: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait, within a bound, until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.1)
