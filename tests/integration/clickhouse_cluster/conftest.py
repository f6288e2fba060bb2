"""A route of the test's own on the one real cluster of the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.cluster import Cluster
from tests.servers.sessions import breakable_cluster, replicated_cluster

from .route import Route, admitted_route

__all__ = ["breakable_cluster", "replicated_cluster"]


@pytest.fixture
def route(replicated_cluster: Cluster, tmp_path: Path) -> Iterator[Route]:
    """Admitted, with a source of generation 1, nothing published."""
    with admitted_route(replicated_cluster, tmp_path) as made:
        yield made


@pytest.fixture
def breakable_route(breakable_cluster: Cluster, tmp_path: Path) -> Iterator[Route]:
    """The same for a test that stops servers: they run again when it ends."""
    with admitted_route(breakable_cluster, tmp_path) as made:
        yield made
