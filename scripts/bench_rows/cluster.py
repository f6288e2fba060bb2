"""A load onto a replicated cluster beside the plain way: one client's pipe into another, and the swap by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from scripts.cluster_servers.cluster import Cluster, free_topology
from scripts.cluster_servers.configuration import Passwords

from .loads import fresh, run_words
from .row import DPONE, Row, Timed, timed

ROWS: Final = 1_000_000
_ON: Final = f"ON CLUSTER {Cluster.name}"
_COLUMNS: Final = """id UInt64, customer UInt32, delta Int32, price Float64, name String, city String,
    note Nullable(String), day Date, moment DateTime('UTC'), parent Nullable(Int64)"""
_VALUES: Final = """number, intHash32(number), toInt32(number % 2000) - 1000, number / 8,
    concat('customer ', toString(number % 50000)), concat('city ', toString(number % 500)),
    if(number % 10 = 0, NULL, toString(number)), toDate(15000 + number % 5000), toDateTime(1300000000 + number),
    if(number % 3 = 0, NULL, toInt64(number) - 1)"""


def moves(rounds: int) -> Iterator[Row]:
    """From a table into a replicated one: ``dpone run`` with all evidence beside the plain way; then replays of it."""
    with _cluster() as cluster:
        for replica in cluster.replicas:
            replica.execute("CREATE DATABASE bench")
        product = _Product.admitted(cluster)
        proofs = {}
        for size, target, turns in ((ROWS, 0.35, rounds), (10 * ROWS, 0.5, max(2, rounds // 2))):
            _provide_source(cluster, size)
            yield from _loads(cluster, product, size, target, turns)
            proofs[size] = product.seconds_of_proof()
            yield from _replays(cluster, product, size, rounds)
        yield Row("from dispatch to proof, 10M ÷ 1M", "×", (proofs[10 * ROWS] / proofs[ROWS],), 1.5)


def _loads(cluster: Cluster, product: _Product, size: int, target: float, rounds: int) -> Iterator[Row]:
    ratios, plain, mine = [], [], []
    for number in range(rounds + 1):
        pipe, _, swap = _plain(cluster, size, number)
        own = product.load(size).wall
        if number:  # the first round warms the caches
            plain.append(size / (pipe + swap))
            mine.append(size / own)
            ratios.append((pipe + swap) / own)
    name = f"{size // ROWS}M × 10"
    yield Row(f"plain: client | client and swap, {name}", "rows/s", tuple(plain), 0, at_most=False)
    yield Row(f"dpone run with all evidence, {name}", "rows/s", tuple(mine), 0, at_most=False)
    yield Row(f"dpone run ÷ the plain way, {name}", "× rows/s", tuple(ratios), target, at_most=False)


def _replays(cluster: Cluster, product: _Product, size: int, rounds: int) -> Iterator[Row]:
    cpu, marks = [], []
    for _ in range(rounds):
        before = _selected_marks(cluster)
        cpu.append(product.replay().cpu)
        marks.append(float(_selected_marks(cluster) - before))
    name = f"{size // ROWS}M × 10"
    yield Row(f"committed replay, {name}, CPU", "s", tuple(cpu), 1.0)
    yield Row(f"committed replay, {name}, index marks selected", "marks", tuple(marks), 8)


def _selected_marks(cluster: Cluster) -> int:
    """In any table of any replica so far; the platform's own marker is one on each, a scan one for 8,192 rows."""
    statement = "SELECT value FROM system.events WHERE event = 'SelectedMarks'"
    return sum(int(replica.execute(statement)[0][0]) for replica in cluster.replicas)


@dataclass(slots=True)
class _Product:
    """An admitted cluster, the manifest, and the environment of every command."""

    manifest: Path
    environment: dict[str, str]
    runs: int = 0

    @classmethod
    def admitted(cls, cluster: Cluster) -> _Product:
        folder = fresh("cluster-product")
        manifest = folder / "move.batch.yaml"
        manifest.write_text(json.dumps(_manifest(cluster)))
        environment = {
            **cluster.environ("bench_source", user="dpone"),
            **cluster.environ("bench_target", user="dpone"),
            "DPONE_HOME": str(folder / "home"),
            "DPONE_LEDGER": f"keeper://{cluster.keeper.hosts}/bench",
        }
        where = ["--connection", "bench_target", "--cluster", cluster.name]
        for words in (["provision", "--database", "bench"], ["attest"], ["admit", "--yes"]):
            timed([DPONE, "platform", words[0], *where, *words[1:]], environment)
        return cls(manifest, environment)

    def load(self, size: int) -> Timed:
        """A new run. Raises RuntimeError when rows are missing."""
        self.runs += 1
        done = timed(run_words(self.manifest, f"r{self.runs}"), self.environment)
        if json.loads(done.out)["result"]["final_rows"] != size:
            raise RuntimeError("the product lost rows")
        return done

    def replay(self) -> Timed:
        """The last run's command again."""
        return timed(run_words(self.manifest, f"r{self.runs}"), self.environment)

    def seconds_of_proof(self) -> float:
        """From the dispatch of the last run's publication to its proof."""
        found = json.loads(timed([DPONE, "ops", "list", "--format", "json"], self.environment).out)
        last = found["result"]["items"][-1]["operation_id"]
        told = json.loads(timed([DPONE, "ops", "explain", last, "--format", "json"], self.environment).out)
        at = {line["title"]: line["at"] for line in told["result"]["timeline"]}
        moments = [datetime.fromisoformat(at[title]) for title in ("dispatched", "committed")]
        return (moments[1] - moments[0]).total_seconds()


def _manifest(cluster: Cluster) -> dict[str, Any]:
    storage = {
        "engine": "ReplicatedMergeTree",
        "order_by": ["id"],
        "cluster": {"name": cluster.name, "ddl_scope": "cluster", "replication_mode": "internal"},
    }
    sink = {
        "type": "clickhouse",
        "connection_ref": "bench_target",
        "table": {"schema": "bench"},
        "strategy": {"mode": "full_refresh"},
        "options": {"durable_quality_replay": True, "physical_design": {"storage": {"clickhouse": storage}}},
    }
    rows = {"id": "rows", "type": "row_count_reconciliation", "tolerance": {"mode": "absolute", "value": 0}}
    acceptance = {
        "enabled": True,
        "mode": "required",
        "capture": {"source": True, "staged": True, "target": True},
        "checks": {"row_count": True, "null_counts": ["id", "note"], "distinct_counts": ["delta"]},
    }
    source = {"type": "clickhouse", "connection_ref": "bench_source"}
    return {
        "kind": "dpone.batch.v1",
        "defaults": {"name": "move", "source": source, "sink": sink},
        "quality": {"gates": [rows], "acceptance": acceptance},
        "schemas": {"bench": {"tables": [{"name": "source", "sink": {"table": {"name": "mine"}}}]}},
    }


@contextmanager
def _cluster() -> Iterator[Cluster]:
    made = Cluster(fresh("cluster"), free_topology(Passwords("bench", "bench", "bench")), dies_with_us=True)
    try:
        made.start()
        yield made
    finally:
        made.end()
        shutil.rmtree(made.folder, ignore_errors=True)


def _provide_source(cluster: Cluster, size: int) -> None:
    cluster.execute("DROP TABLE IF EXISTS bench.source")
    cluster.execute(f"DROP TABLE IF EXISTS bench.plain {_ON}")
    cluster.execute(f"CREATE TABLE bench.source ({_COLUMNS}) ENGINE = MergeTree ORDER BY id")
    cluster.execute(f"INSERT INTO bench.source SELECT {_VALUES} FROM numbers({size})", seconds=300)
    _create(cluster, "plain", f"{size}")


def _create(cluster: Cluster, table: str, path: str) -> None:
    engine = f"ReplicatedMergeTree('/bench/{table}/{path}', '{{replica}}') ORDER BY id"
    cluster.execute(f"CREATE TABLE bench.{table} {_ON} ({_COLUMNS}) ENGINE = {engine}")


def _plain(cluster: Cluster, size: int, number: int) -> tuple[float, float, float]:
    """Seconds of the pipe, of waiting for the other replica, of the swap. Raises RuntimeError when rows are missing."""
    _create(cluster, "candidate", f"{size}-{number}")
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
    cluster.replicas[1].execute("SYSTEM SYNC REPLICA bench.candidate", seconds=300)
    synced = time.perf_counter()
    cluster.execute(f"RENAME TABLE bench.plain TO bench.old, bench.candidate TO bench.plain {_ON}")
    swapped = time.perf_counter()
    if any(replica.execute("SELECT count() FROM bench.plain") != [(size,)] for replica in cluster.replicas):
        raise RuntimeError("the plain way lost rows")
    cluster.execute(f"DROP TABLE bench.old {_ON}")
    return piped - began, synced - piped, swapped - synced
