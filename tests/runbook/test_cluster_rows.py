"""The rows of the runbook that need servers: a replica or the Keeper is away, a replica comes back empty."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone.domain.operation import State
from tests.integration.clickhouse_cluster.route import Route, admitted_route
from tests.servers.cluster import Cluster
from tests.servers.sessions import breakable_cluster, replicated_cluster

from .page import rows, words

__all__ = ["breakable_cluster", "replicated_cluster"]
SECOND, THIRD = 2, 3


@pytest.fixture
def route(breakable_cluster: Cluster, tmp_path: Path) -> Iterator[Route]:
    """Run r1 completed; the source has generation 2 since."""
    with admitted_route(breakable_cluster, tmp_path) as made:
        assert made.run("r1").code == 0
        made.write_source(SECOND)
        yield made


def follow(route: Route, row: str) -> None:
    """Type the row's commands."""
    meant = {
        "MANIFEST": str(route.sandbox.manifest),
        "DAG": "d",
        "RUN": "r2",
        "NEXT": "r3",
        "NAME": "Ada",
        "TEXT": "it was agreed on the phone",
        "CONNECTION": "replay_target",
        "CLUSTER": route.cluster.name,
        "REPLICA": route.cluster.replicas[-1].name,
    }
    for line in rows()[row]:
        program, *rest = words(line, meant)
        assert program == "dpone"
        done = route.sandbox.dpone(*rest, seconds=120)
        assert done.code == 0, (line, done)


def stopped(route: Route, folder: Path) -> None:
    killed = route.acted(folder / "killed", "kill@swap#1:after", "r2")
    assert killed.code == -signal.SIGKILL, killed


def state(route: Route, run_id: str) -> State:
    found = route.found(run_id)
    assert found is not None
    return found.operation.state


def test_replica_away(route: Route, tmp_path: Path) -> None:
    stopped(route, tmp_path)
    last = route.cluster.replicas[-1]
    last.freeze()
    seen = route.run("r2")
    assert seen.code == 1
    codes = (seen.result["error_code"], seen.details.get("cause"))
    assert "DPONE_PUBLICATION_REPLICA_UNREACHABLE" in codes, seen
    last.thaw()
    last.wait_ready()
    follow(route, "replica-away")
    route.check_settled("r2", SECOND)


def test_keeper_lost(route: Route, tmp_path: Path) -> None:
    stopped(route, tmp_path)
    route.cluster.keeper.freeze()
    seen = route.run("r2")
    assert (seen.code, seen.result["error_code"]) == (1, "DPONE_LEDGER_UNREACHABLE"), seen
    route.cluster.start()
    follow(route, "keeper-lost")
    route.check_settled("r2", SECOND)


def test_replica_rebuilt(route: Route) -> None:
    last = route.cluster.replicas[-1]
    last.stop()
    last.start(empty=True)
    seen = route.run("r3")
    assert (seen.code, seen.result["error_code"]) == (2, "DPONE_PUBLICATION_NOT_ADMITTED"), seen
    follow(route, "replica-rebuilt")
    route.check_settled("r3", SECOND)
    assert state(route, "r3") is State.COMPLETE
