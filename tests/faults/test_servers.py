"""Servers that stand still, lose their session or their Keeper: the target's evidence decides, never the run's hope.

Replicas that are frozen, killed or emptied at each step are in tests/integration/clickhouse_cluster.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.sandbox import Ended, ended
from tests.cli.waiting import await_line
from tests.integration.clickhouse_cluster.route import Route, lines_of, points_of
from tests.ledger.test_postgres_store import fresh_url
from tests.servers.cluster import Cluster
from tests.servers.postgres import PostgresServer
from tests.servers.sessions import postgres

from .fleet import admitted_fleet
from .network import Network
from .promises import UNFINISHED, Expected, check_ending, check_finished, check_live

__all__ = ["postgres"]

THOROUGH = os.environ.get("DPONE_TEST_PROFILE") == "thorough"
FROZEN_SECONDS = 15.0
"""Longer than a session of the servers (10 s) and than the ledger's own patience."""
POINTS = (
    "append PublicationDispatched#1:after",
    "fill#1:middle",
    "observe-target#1:before",
    "append CapsuleWritten#1:before",
    "append OperationCompleted+SlotVacated#1:before",
)


@pytest.mark.parametrize("point", POINTS if THOROUGH else POINTS[:1])
def test_keeper_stands_still_until_every_session_has_expired(
    point: str, network: Network, record: Callable[[str], Path]
) -> None:
    route = network.route
    generation = max(route.rows)
    run_id = f"r{generation}"
    keeper = route.cluster.keeper.process
    assert keeper is not None
    process = network.start(record("faulted"), f"freeze:{keeper.pid}@{point}", run_id)
    await_line(record("faulted"), f"point {point}", 90)
    time.sleep(FROZEN_SECONDS)
    keeper.send(signal.SIGCONT)
    faulted = ended(process, 180)
    check_ending(faulted, UNFINISHED)
    route.cluster.start()
    check_live(route, generation - 1, generation)
    expected, finished = _repeated(route, network, record, run_id, generation)
    records = [lines_of(record(name)) for name in ("faulted", "finished")]
    check_finished(route, expected, finished, records)


def _repeated(
    route: Route, network: Network, record: Callable[[str], Path], run_id: str, generation: int
) -> tuple[Expected, Ended]:
    expected = Expected.of(route, run_id, generation)
    return expected, network.run(record("finished"), "none", run_id)


@pytest.fixture
def beside(breakable_cluster: Cluster, postgres: PostgresServer, tmp_path: Path) -> Iterator[Route]:
    """A target whose ledger is on PostgreSQL: what the Keeper does, the ledger does not feel."""
    url = fresh_url(postgres, create=False)
    with admitted_fleet(breakable_cluster, tmp_path, 1, 1, url) as fleet:
        route = fleet.routes[0]
        route.write_source(1, 500)
        first = route.run("r1")
        assert first.code == 0, first
        route.write_source(2, 500)
        yield route


def test_replicas_that_lost_their_keeper_are_refused_before_the_source_is_read(beside: Route, tmp_path: Path) -> None:
    beside.cluster.keeper.kill()
    refused = beside.acted(tmp_path / "refused", "none", "r2")
    check_ending(refused, UNFINISHED | {"DPONE_REPLAY_QUALITY_EVIDENCE_UNSUPPORTED"})
    assert refused.code == 1, refused
    assert "read#1:before" not in points_of(lines_of(tmp_path / "refused"))
    beside.cluster.start()
    finished = beside.run("r2")
    assert finished.code == 0, finished
    beside.check_settled("r2", 2)


ON_THE_WAY = [
    ("end", "append PublicationDispatched#1:after"),
    ("end", "fill#1:middle"),
    *([("freeze", "append PublicationDispatched#1:after")] if THOROUGH else []),  # a minute of waiting
]


@pytest.mark.parametrize(("how", "point"), ON_THE_WAY)
def test_replicas_become_read_only_on_the_way(how: str, point: str, beside: Route, tmp_path: Path) -> None:
    keeper = beside.cluster.keeper.process
    assert keeper is not None
    stopped = beside.acted(tmp_path / "stopped", f"{how}:{keeper.pid}@{point}", "r2", 120)
    assert point in points_of(lines_of(tmp_path / "stopped"))
    check_ending(stopped, UNFINISHED)
    assert stopped.code == 1, stopped
    beside.cluster.start()
    check_live(beside, 1, 2)
    expected = Expected.of(beside, "r2", 2)
    finished = beside.acted(tmp_path / "finished", "none", "r2")
    check_finished(beside, expected, finished, [lines_of(tmp_path / name) for name in ("stopped", "finished")])
