"""Several targets, each in a database of its own, on one admitted cluster and in one ledger, behind shared relays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from tests.cli.sandbox import Ended, Sandbox
from tests.integration.clickhouse_cluster.route import Route
from tests.servers.cluster import Cluster, unique_database

from .network import Network, over


@dataclass(frozen=True, slots=True)
class Fleet:
    """``networks``: one for each target. Their relays and their ledger are the same."""

    cluster: Cluster
    networks: tuple[Network, ...]

    @property
    def routes(self) -> tuple[Route, ...]:
        return tuple(network.route for network in self.networks)

    @property
    def databases(self) -> tuple[str, ...]:
        return tuple(route.database for route in self.routes)


@contextmanager
def admitted_fleet(cluster: Cluster, folder: Path, targets: int, seed: int, ledger_url: str = "") -> Iterator[Fleet]:
    """Provisioned, attested and admitted once for all targets; nothing is published yet."""
    url = ledger_url or f"keeper://{cluster.keeper.hosts}/dpone_{uuid4().hex[:12]}"
    environment = {
        **cluster.environ("replay_target"),
        **cluster.environ("replay_source"),
        "DPONE_CONN_REPLAY_SOURCE_PARAMS": '{"receive_timeout": 10}',  # a source that falls silent is waited for 300 s
        "DPONE_LEDGER": url,
    }
    with ExitStack() as stack:
        databases = [stack.enter_context(unique_database(cluster)) for _ in range(targets)]
        routes = []
        for database in databases:
            place = folder / database
            place.mkdir(parents=True)
            route = Route(cluster, database, Sandbox(place, dict(environment)), url)
            route.write_manifest()
            routes.append(route)
        named = [word for database in databases for word in ("--database", database)]
        done = asked(cluster, routes[0], ["provision", *named])
        assert done.code == 0, done
        admit(cluster, routes[0])
        first = over(routes[0], stack, seed)
        yield Fleet(cluster, tuple(replace(first, route=route) for route in routes))


def admit(cluster: Cluster, route: Route) -> None:
    """Attest and admit what the cluster is now."""
    for words in (["attest", "--keeper", cluster.keeper.hosts], ["admit", "--yes"]):
        done = asked(cluster, route, words)
        assert done.code == 0, done


def asked(cluster: Cluster, route: Route, words: list[str]) -> Ended:
    """A command of the platform's owner."""
    where = ["--connection", "replay_target", "--cluster", cluster.name, "--format", "json"]
    return route.sandbox.dpone("platform", *words, *where)
