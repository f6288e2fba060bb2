"""A load onto a replicated cluster beside the plain way: one client's pipe into another, and the swap by hand."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from scripts.cluster_servers.cluster import Cluster, free_topology
from scripts.cluster_servers.configuration import Passwords

from .loads import fresh
from .row import Row

ROWS: Final = 1_000_000
_ON: Final = f"ON CLUSTER {Cluster.name}"
_COLUMNS: Final = """id UInt64, customer UInt32, delta Int32, price Float64, name String, city String,
    note Nullable(String), day Date, moment DateTime('UTC'), parent Nullable(Int64)"""
_VALUES: Final = """number, intHash32(number), toInt32(number % 2000) - 1000, number / 8,
    concat('customer ', toString(number % 50000)), concat('city ', toString(number % 500)),
    if(number % 10 = 0, NULL, toString(number)), toDate(15000 + number % 5000), toDateTime(1300000000 + number),
    if(number % 3 = 0, NULL, toInt64(number) - 1)"""


def moves(rounds: int) -> Iterator[Row]:
    """1,000,000 rows × 10 columns from a table into a replicated one, seen on every replica."""
    with _cluster() as cluster:
        _provide_source(cluster)
        measured = [_plain(cluster, number) for number in range(rounds + 1)][1:]  # the first round warms the caches
    piped, synced, swapped = zip(*measured, strict=True)
    speeds = tuple(ROWS / (pipe + swap) for pipe, swap in zip(piped, swapped, strict=True))
    yield Row("plain: client | client and swap, 1M × 10", "rows/s", speeds, 0, at_most=False)
    yield Row("plain: until the other replica has the rows", "s more", synced, 60)
    yield Row("plain: the swap ON CLUSTER", "s", swapped, 60)


@contextmanager
def _cluster() -> Iterator[Cluster]:
    made = Cluster(fresh("cluster"), free_topology(Passwords("bench", "bench", "bench")), dies_with_us=True)
    try:
        made.start()
        yield made
    finally:
        made.end()
        shutil.rmtree(made.folder, ignore_errors=True)


def _provide_source(cluster: Cluster) -> None:
    for replica in cluster.replicas:
        replica.execute("CREATE DATABASE bench")
    cluster.execute(f"CREATE TABLE bench.source ({_COLUMNS}) ENGINE = MergeTree ORDER BY id")
    cluster.execute(f"INSERT INTO bench.source SELECT {_VALUES} FROM numbers({ROWS})")
    _create(cluster, "plain", "0")


def _create(cluster: Cluster, table: str, path: str) -> None:
    engine = f"ReplicatedMergeTree('/bench/{table}/{path}', '{{replica}}') ORDER BY id"
    cluster.execute(f"CREATE TABLE bench.{table} {_ON} ({_COLUMNS}) ENGINE = {engine}")


def _plain(cluster: Cluster, number: int) -> tuple[float, float, float]:
    """Seconds of the pipe, of waiting for the other replica, of the swap. Raises RuntimeError when rows are missing."""
    _create(cluster, "candidate", str(number))
    client = f"clickhouse-client --port {cluster.replicas[0].port} --query"
    began = time.perf_counter()
    subprocess.run(
        [
            "bash",
            "-o",
            "pipefail",
            "-c",
            f"{client} 'SELECT * FROM bench.source FORMAT Native' | "
            f"{client} 'INSERT INTO bench.candidate FORMAT Native'",
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    piped = time.perf_counter()
    cluster.replicas[1].execute("SYSTEM SYNC REPLICA bench.candidate")
    synced = time.perf_counter()
    cluster.execute(f"RENAME TABLE bench.plain TO bench.old, bench.candidate TO bench.plain {_ON}")
    swapped = time.perf_counter()
    if any(replica.execute("SELECT count() FROM bench.plain") != [(ROWS,)] for replica in cluster.replicas):
        raise RuntimeError("the plain way lost rows")
    cluster.execute(f"DROP TABLE bench.old {_ON}")
    return piped - began, synced - piped, swapped - synced
