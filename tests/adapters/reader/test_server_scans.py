"""What goes wrong while a worker scans a table of the real cluster: it never lasts, and never becomes a count."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.reader import ServerReader
from dpone.domain.errors import ReaderFailed
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics
from tests.servers.cluster import unique_database
from tests.servers.sessions import breakable_cluster, replicated_cluster

from . import replicated

__all__ = ["breakable_cluster", "replicated_cluster"]

ROWS = 2_000_000
NUMBERS = tuple(Column(f"c{i}", "Int64") for i in range(64))
SLOW = Metrics(typed_hash=True)
"""Takes about eight seconds and little memory."""
BUDGET = 3.0
"""In which that does not fit. The server's own limit is then two seconds."""
LEFT_BEHIND_SECONDS = 3.0
"""Much less than the scan would take, and more than the server's limit."""


@pytest.fixture(scope="module")
def database(replicated_cluster: Cluster) -> Iterator[str]:
    """``large``: a table that is not counted in a moment."""
    with unique_database(replicated_cluster) as name:
        replicated.create(replicated_cluster, name, "large", NUMBERS)
        values = ", ".join(f"toInt64(number % {i + 90})" for i in range(len(NUMBERS)))
        replicated_cluster.execute(f"INSERT INTO {name}.large SELECT {values} FROM numbers({ROWS})")
        replicated.synchronise(replicated_cluster, name, "large")
        yield name


@pytest.fixture
def plan(breakable_cluster: Cluster, database: str) -> ReadPlan:
    replicated.wait_well(breakable_cluster, database, "large")  # the test before may have frozen a replica
    return replicated.plan(breakable_cluster, database, "large", NUMBERS, SLOW)


@pytest.fixture
def reader(breakable_cluster: Cluster) -> Iterator[ServerReader]:
    made = ServerReader(replicated.connection(), replicated.endpoints(breakable_cluster))
    yield made
    made.close()


@contextmanager
def during_the_scan(cluster: Cluster, database: str, action: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as the first replica counts; fails when it never did."""
    seen = threading.Event()

    def watch() -> None:
        if replicated.wait_for_scans(cluster, database, 1, 20):
            seen.set()
            action()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        watching.join()
    assert seen.is_set()


def test_a_scan_that_does_not_fit_is_told_apart(breakable_cluster: Cluster, plan: ReadPlan) -> None:
    reader = ServerReader(replicated.connection(), replicated.endpoints(breakable_cluster), budget=BUDGET)
    # The server's limit ends it, or the parent's that comes right after: each says its own.
    with pytest.raises(ReaderFailed, match=r"did not (end|finish) within the budget") as caught:
        reader.observe(plan)
    assert (caught.value.reaped, caught.value.fits) == (True, False), str(caught.value)
    assert replicated.wait_for_scans(breakable_cluster, plan.database, 0, 1)


@pytest.mark.parametrize("how", ["freeze", "kill"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_replica_that_goes_away_meanwhile(
    breakable_cluster: Cluster, plan: ReadPlan, reader: ServerReader, number: int, how: str
) -> None:
    replica = breakable_cluster.replicas[number]
    gone = f"on replica {replica.name} the server does not answer in time"
    try:
        with (
            pytest.raises(ReaderFailed, match=gone) as caught,
            during_the_scan(breakable_cluster, plan.database, getattr(replica, how)),
        ):
            reader.observe(plan)
    finally:
        replica.kill()  # one that was frozen would lose its Keeper session some time during the next test
        replicated.forget_session(breakable_cluster, plan.database, "large", replica.name)
    assert (caught.value.reaped, caught.value.fits) == (True, True)


def test_a_table_that_becomes_another_one_meanwhile(
    breakable_cluster: Cluster, plan: ReadPlan, reader: ServerReader
) -> None:
    second = breakable_cluster.replicas[1]
    try:
        with (
            pytest.raises(ReaderFailed, match="on replica replica_2 the table is not, or not any more"),
            during_the_scan(
                breakable_cluster,
                plan.database,
                lambda: second.execute(f"RENAME TABLE {plan.database}.large TO {plan.database}.other"),
            ),
        ):
            reader.observe(plan)
    finally:
        second.execute(f"RENAME TABLE {plan.database}.other TO {plan.database}.large")


def test_a_killed_worker_leaves_a_statement_that_ends_by_the_servers_limit(
    breakable_cluster: Cluster, plan: ReadPlan
) -> None:
    reader = ServerReader(replicated.connection(), replicated.endpoints(breakable_cluster), budget=BUDGET)
    reader.warm()
    process = reader._waiting[0]._process
    assert process is not None
    with (
        pytest.raises(ReaderFailed, match="no observation") as caught,
        during_the_scan(breakable_cluster, plan.database, lambda: os.kill(process.pid, signal.SIGKILL)),
    ):
        reader.observe(plan)
    assert (caught.value.reaped, caught.value.fits) == (True, True)
    assert replicated.wait_for_scans(breakable_cluster, plan.database, 0, LEFT_BEHIND_SECONDS)


def test_a_statement_carries_its_own_limit(breakable_cluster: Cluster, plan: ReadPlan, reader: ServerReader) -> None:
    carried: list[dict[str, str]] = []

    def look() -> None:
        found = breakable_cluster.execute(
            "SELECT Settings.Names, Settings.Values FROM system.processes "
            f"WHERE query LIKE '%FROM `{plan.database}`.%' AND query NOT LIKE '%processes%'"
        )
        carried.extend(dict(zip(names, values, strict=True)) for names, values in found)

    with during_the_scan(breakable_cluster, plan.database, look):
        reader.observe(plan)
    (settings,) = carried
    assert 50 <= int(settings["max_execution_time"]) <= 60
    assert (settings["readonly"], settings["max_result_rows"]) == ("2", "10000")


_PARENT = """
import sys
from dpone.adapters.cluster.session import Endpoint
from dpone.adapters.connections import Connection
from dpone.adapters.reader import ServerReader
from dpone.domain.codec import decode, parse_strict
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics, TableIdentity
port, password, plan = sys.stdin.readline().split(" ", 2)
access = Connection("replay_target", "", username="dpone_reader", password=password)
reader = ServerReader(access, [Endpoint("replica_1", "127.0.0.1", int(port))], budget=3.0)
reader.warm()
print(reader._waiting[0]._process.pid, flush=True)
reader.observe(decode(ReadPlan, parse_strict(plan)))
"""


def test_a_worker_and_its_statement_end_with_the_parent(breakable_cluster: Cluster, plan: ReadPlan) -> None:
    alone = replicated.told(plan, "replica_1")
    line = f"{breakable_cluster.replicas[0].port} {replicated.connection().password} {alone}\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _PARENT], text=True, **pipes) as parent:  # type: ignore[call-overload]
        assert parent.stdin is not None
        parent.stdin.write(line)
        parent.stdin.flush()
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert replicated.wait_for_scans(breakable_cluster, plan.database, 1, 20)
        parent.kill()
    deadline = time.monotonic() + 1
    while _running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _running(pid)
    assert replicated.wait_for_scans(breakable_cluster, plan.database, 0, LEFT_BEHIND_SECONDS)


def _running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
