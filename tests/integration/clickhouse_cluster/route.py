"""A target of its own on the real cluster, admitted to a ledger of its own, and the command line as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from dpone.adapters.runtime.lookup import Found, all_operations, one_operation
from dpone.domain.history import illegality
from dpone.domain.identity import OperationKey, operation_id
from dpone.domain.names import is_candidate_name
from dpone.ledger.store import EventLedger, open_ledger
from dpone.ledger.verify import verify_ledger
from tests.cli.sandbox import Ended, Sandbox, ended
from tests.servers.cluster import Cluster, unique_database

COMPOSED = (sys.executable, "-m", "tests.integration.clickhouse_cluster.process")
TABLE = "records"


@dataclass(slots=True)
class Route:
    """``database`` holds source and target on every replica; the ledger's root is under the cluster's own Keeper."""

    cluster: Cluster
    database: str
    sandbox: Sandbox
    ledger_url: str
    generation: int = 0
    rows: dict[int, int] = field(default_factory=dict)
    key: OperationKey | None = None

    def admit(self) -> None:
        """Provision, attest and admit, as a platform owner does."""
        where = ["--connection", "replay_target", "--cluster", self.cluster.name, "--format", "json"]
        keeper = ["--keeper", self.cluster.keeper.hosts]
        for words in (
            ["platform", "provision", *where, "--database", self.database],
            ["platform", "attest", *where, *keeper],
            ["platform", "admit", *where, "--yes"],
        ):
            done = self.sandbox.dpone(*words)
            assert done.code == 0, done

    def write_source(self, generation: int, count: int = 5_000) -> None:
        """Rows that tell which generation they belong to; the first replica alone has them."""
        self.cluster.execute(f"DROP TABLE IF EXISTS {self.database}.source")
        self.cluster.execute(
            f"CREATE TABLE {self.database}.source (record_id UInt64, generation UInt8, amount Nullable(Float64)) "
            "ENGINE = MergeTree ORDER BY record_id"
        )
        self.cluster.execute(
            f"INSERT INTO {self.database}.source SELECT number, {generation}, if(number % 7 = 0, NULL, number * 0.1) "
            f"FROM system.numbers LIMIT {count + generation}"
        )
        self.rows[generation] = count + generation

    def write_manifest(self, **sink: Any) -> None:
        """A replicated target, gated and observed. JSON is YAML."""
        storage = {
            "engine": "ReplicatedMergeTree",
            "order_by": ["record_id"],
            "cluster": {"name": self.cluster.name, "ddl_scope": "cluster", "replication_mode": "internal"},
            **sink.pop("storage", {}),
        }
        data = {
            "kind": "dpone.batch.v1",
            "defaults": {
                "name": "refresh",
                "source": {"type": "clickhouse", "connection_ref": "replay_source"},
                "sink": {
                    "type": "clickhouse",
                    "connection_ref": "replay_target",
                    "table": {"schema": self.database},
                    "strategy": {"mode": "full_refresh"},
                    "options": {
                        "durable_quality_replay": True,
                        "physical_design": {"storage": {"clickhouse": storage}},
                    },
                    **sink,
                },
            },
            "quality": {
                "gates": [
                    {"id": "rows", "type": "row_count_reconciliation", "tolerance": {"mode": "absolute", "value": 0}},
                    {"id": "hash", "type": "typed_hash_reconciliation"},
                ],
                "acceptance": {
                    "enabled": True,
                    "mode": "required",
                    "capture": {"source": True, "staged": True, "target": True},
                    "checks": {"row_count": True, "null_counts": ["amount"], "distinct_counts": ["record_id"]},
                },
            },
            "schemas": {self.database: {"tables": [{"name": "source", "sink": {"table": {"name": TABLE}}}]}},
        }
        self.sandbox.manifest.write_text(json.dumps(data, indent=1))

    def run(self, run_id: str = "r1", seconds: float = 120) -> Ended:
        """``dpone run`` to its end, the installed command."""
        return self.sandbox.dpone(*self.sandbox.words(run_id), seconds=seconds)

    def composed(self, record: Path, action: str, run_id: str = "r1") -> subprocess.Popen[str]:
        """``dpone run`` with the recording composition and short bounds (see .process)."""
        return self.sandbox.start([str(record), action, *self.sandbox.words(run_id)], COMPOSED)

    def acted(self, record: Path, action: str, run_id: str = "r1", seconds: float = 120) -> Ended:
        """The same to its end."""
        return ended(self.composed(record, action, run_id), seconds)

    @contextmanager
    def ledger(self) -> Iterator[EventLedger]:
        """The ledger, for looking."""
        with open_ledger(self.ledger_url, create=False) as opened:
            yield opened

    def found(self, run_id: str = "r1") -> Found | None:
        """The run's operation; None when it was never admitted."""
        with self.ledger() as ledger:
            if self.key is not None:
                stream = operation_id(replace(self.key, run_id=run_id))
                if stream in set(ledger.streams()):  # or all of them would be read, after every run
                    return one_operation(ledger, stream.hex)
            for one in all_operations(ledger):
                key = one.operation.key
                if key is not None and (key.database, key.run_id) == (self.database, run_id):
                    self.key = key
                    return one
        return None

    def findings(self) -> list[str]:
        """What ``dpone audit verify`` would find."""
        with self.ledger() as ledger:
            return [str(finding) for finding in verify_ledger(ledger, illegality).findings]

    def live(self) -> list[int | None]:
        """By replica: which generation of rows is live there, None where there is no table."""
        return [self._live(number) for number in range(len(self.cluster.replicas))]

    def names(self) -> list[set[str]]:
        """By replica: every table of the database but the source."""
        statement = f"SELECT name FROM system.tables WHERE database = '{self.database}' AND name != 'source'"
        return [{name for (name,) in replica.execute(statement)} for replica in self.cluster.replicas]

    def _live(self, number: int) -> int | None:
        replica = self.cluster.replicas[number]
        if TABLE not in self.names()[number]:
            return None
        ((count, low, high),) = replica.execute(
            f"SELECT count(), min(generation), max(generation) FROM {self.database}.{TABLE}"
        )
        assert low == high, f"rows of two generations on {replica.name}"
        assert count == self.rows[low], f"{count} rows of generation {low} on {replica.name}"
        return int(low)

    def check_settled(self, run_id: str, generation: int) -> None:
        """Complete, on every replica alike, and nothing left that a late statement could use."""
        found = self.found(run_id)
        assert found is not None
        assert found.operation.governance == "complete"
        assert (found.slot.holder, found.slot.guard) == (None, None)
        assert self.live() == [generation] * len(self.cluster.replicas)
        minted = found.operation.generation
        assert minted is not None
        for names in self.names():
            assert not [name for name in names if is_candidate_name(name, TABLE, minted.id)]
        assert self.findings() == []


@contextmanager
def admitted_route(cluster: Cluster, folder: Path) -> Iterator[Route]:
    """A route that is ready to run, and taken away afterwards."""
    with unique_database(cluster) as database:
        url = f"keeper://{cluster.keeper.hosts}/dpone_{uuid4().hex[:12]}"
        environment = {
            **cluster.environ("replay_target"),
            **cluster.environ("replay_source"),
            "DPONE_CONN_REPLAY_SOURCE_PARAMS": '{"receive_timeout": 10}',
            "DPONE_LEDGER": url,
        }
        route = Route(cluster, database, Sandbox(folder, environment), url)
        route.write_manifest()
        route.write_source(1)
        route.admit()
        yield route


def lines_of(record: Path) -> Sequence[str]:
    """What a recorded process wrote down."""
    return record.read_text().splitlines() if record.exists() else ()


def points_of(lines: Iterable[str]) -> list[str]:
    """The points that a recorded process passed."""
    return [line.removeprefix("point ") for line in lines if line.startswith("point ")]
