"""One route behind relays for many cases: each publishes a generation of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.servers.cluster import Cluster
from tests.servers.sessions import breakable_cluster, replicated_cluster

from .network import Network, relayed

__all__ = ["breakable_cluster", "replicated_cluster"]


@pytest.fixture(scope="session")
def networks(replicated_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Network]]:
    """The present route, or a new one when the last case did not leave it settled."""
    with ExitStack() as stack:
        made: list[Network] = []

        def present() -> Network:
            if not made or not _is_settled(made[-1]):
                folder = tmp_path_factory.mktemp("route")
                made.append(stack.enter_context(relayed(replicated_cluster, folder)))
            return made[-1]

        yield present


@pytest.fixture
def network(networks: Callable[[], Network], breakable_cluster: Cluster) -> Iterator[Network]:
    """At least one generation is published, nothing is held, and a source of the next generation is ready."""
    present = networks()
    present.route.write_source(max(present.route.rows) + 1)
    yield present
    present.disarm()


@pytest.fixture
def record(tmp_path: Path) -> Callable[[str], Path]:
    """Where a process writes down what it does, by a name."""
    return tmp_path.joinpath


def _is_settled(network: Network) -> bool:
    network.disarm()
    route = network.route
    found = route.found(f"r{max(route.rows)}")
    return found is not None and found.operation.governance == "complete" and found.slot.holder is None
