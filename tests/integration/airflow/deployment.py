"""A whole Airflow in a folder: configuration by environment, a metadata database, DAGs with their manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
EXAMPLE = ROOT / "examples/batch/durable-replay-embedded.batch.yaml"
SERVERS = ROOT / "examples/batch/durable-replay-full-refresh.batch.yaml"
RECORDS = 240
_FLOW_PROCESS = """
  - name: {name}
    source: {{type: csv, path: records.csv}}
    sink:
      type: clickhouse
      connection_ref: embedded
      table: {{schema: shop, name: {name}}}
      columns:
        record_id: UInt64
        customer: Nullable(String)
        amount: Decimal(10, 2)
        paid_at: Nullable(DateTime('UTC'))
      strategy: {{mode: full_refresh}}
      options: {{durable_quality_replay: true}}
"""


@dataclass(frozen=True, slots=True)
class Deployment:
    """``folder`` holds everything: Airflow's home, the DAGs folder, the home of dpone."""

    folder: Path

    @property
    def dags(self) -> Path:
        return self.folder / "dags"

    @property
    def dpone_home(self) -> Path:
        return self.folder / "dpone"

    @property
    def ledger(self) -> Path:
        return self.dpone_home / "ledger.sqlite"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        return {
            **kept,
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
            "DPONE_HOME": str(self.dpone_home),
            "PYTHONPATH": str(ROOT),
            **more,
        }

    def provide(self) -> None:
        """DAG files and manifests."""
        manifests = self.dags / "manifests"
        manifests.mkdir(parents=True)
        shutil.copytree(HERE / "dags", self.dags, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "examples/data/records.csv", manifests)
        text = EXAMPLE.read_text().replace("../data/records.csv", "records.csv")
        for name in ("good", "unloaded", "one", "two", "shared", "killed", "marked"):
            own = text.replace("name: replay_records", f"name: {name}_records").replace(
                "name: refresh", f"name: {name}"
            )
            (manifests / f"{name}.batch.yaml").write_text(own)
        poor = text.replace("name: replay_records", "name: poor_records")
        gate = """    - id: rows
      type: row_count_reconciliation
      severity: error
      tolerance: {mode: absolute, value: 0}
"""
        assert gate in poor
        poor = poor.replace(gate, "    - id: enough\n      type: min_rows\n      rows: 1000\n")
        (manifests / "poor.batch.yaml").write_text(poor)
        (manifests / "servers.batch.yaml").write_text(SERVERS.read_text())
        second = _FLOW_PROCESS.format(name="orders") + "    depends_on: [customers]\n"
        flow = (
            "kind: dpone.flow.v1\nmetadata:\n  id: shop\nprocesses:" + _FLOW_PROCESS.format(name="customers") + second
        )
        (manifests / "shop.flow.yaml").write_text(flow)

    def python(self, *words: str, seconds: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python with these words."""
        return subprocess.run(
            [sys.executable, *words],
            env=self.environment(**more),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def deployed(folder: Path) -> Deployment:
    """A deployment with a migrated metadata database."""
    deployment = Deployment(folder)
    deployment.provide()
    done = deployment.python("-m", "airflow", "db", "migrate")
    assert done.returncode == 0, done.stderr[-2000:]
    return deployment
