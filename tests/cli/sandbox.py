"""A home, a source file and a manifest of one's own, and the command line as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMPOSED = (sys.executable, "-m", "tests.crash.process")
COLUMNS = {"id": "UInt32", "name": "Nullable(String)", "amount": "Decimal(10, 2)", "at": "DateTime('UTC')"}
ROWS_GATE = {"id": "rows", "type": "row_count_reconciliation", "tolerance": {"mode": "absolute", "value": 0}}
CANARY = "canary-7f3e"
"""Part of every name in the source: it may stand in no output, whatever happens."""

Row = tuple[int, str | None, str, str]


def rows_of(generation: int, count: int = 300) -> list[Row]:
    """Rows that tell which generation they belong to, every seventh with a NULL."""
    return [
        (
            number,
            None if number % 7 == 0 else f"{CANARY}-{generation}-{number}",
            f"{generation}.{number % 100:02d}",
            f"2026-01-{number % 28 + 1:02d} 12:00:{generation:02d}",
        )
        for number in range(1, count + generation)
    ]


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended: its exit code (negative: the signal) and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout, and nothing else there."""
        lines = self.out.splitlines()
        assert len(lines) == 1, f"not one line on stdout: {self.out[:500]!r}, stderr {self.err[:500]!r}"
        found: dict[str, Any] = json.loads(lines[0])
        return found

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["result"]
        return found

    @property
    def details(self) -> dict[str, Any]:
        found: dict[str, Any] = self.result["replay_details"]
        return found


@dataclass(slots=True)
class Sandbox:
    """One folder with everything in it. Commands run from ``/`` so that no relative path helps by chance."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def ledger(self) -> Path:
        return self.home / "ledger.sqlite"

    @property
    def engine(self) -> Path:
        return self.home / "embedded" / "data"

    @property
    def source(self) -> Path:
        return self.folder / "rows.csv"

    @property
    def manifest(self) -> Path:
        return self.folder / "load.batch.yaml"

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Replace the source file."""
        lines = (",".join("" if value is None else str(value) for value in row) for row in rows)
        self.source.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")

    def write_manifest(
        self,
        *,
        name: str = "load",
        gates: Sequence[Mapping[str, Any]] = (ROWS_GATE,),
        acceptance: Mapping[str, Any] | None = None,
        sink: Mapping[str, Any] | None = None,
        source: Mapping[str, Any] | None = None,
        durable: bool = True,
    ) -> None:
        """Replace the manifest. JSON is YAML."""
        observed = {
            "enabled": True,
            "mode": "required",
            "capture": {"source": True, "staged": True, "target": True},
            "checks": {"row_count": True, "null_counts": ["name"], "distinct_counts": ["id"]},
        }
        data = {
            "kind": "dpone.batch.v1",
            "defaults": {
                "name": name,
                "source": {"type": "csv", "path": self.source.name, **(source or {})},
                "sink": {
                    "type": "clickhouse",
                    "connection_ref": "embedded",
                    "table": {"schema": "db"},
                    "columns": COLUMNS,
                    "strategy": {"mode": "full_refresh"},
                    "options": {"durable_quality_replay": durable},
                    **(sink or {}),
                },
            },
            "quality": {"gates": list(gates), "acceptance": {**observed, **(acceptance or {})}},
            "schemas": {"s": {"tables": ["rows"]}},
        }
        self.manifest.write_text(json.dumps(data, indent=1))

    def words(self, run_id: str = "r1", dag_id: str = "d") -> list[str]:
        """``dpone run`` with an identity, in JSON."""
        return ["run", str(self.manifest), "--dag-id", dag_id, "--run-id", run_id, "--format", "json"]

    def run(self, run_id: str = "r1", **rest: Any) -> Ended:
        """``dpone run`` to its end."""
        return self.dpone(*self.words(run_id), **rest)

    def dpone(self, *words: str, seconds: float = 60, **rest: Any) -> Ended:
        """The installed command to its end."""
        return ended(self.start(words, **rest), seconds)

    def start(self, words: Sequence[str], program: Sequence[str] = (), **rest: Any) -> subprocess.Popen[str]:
        """Start the installed command, or ``program`` in its place, and do not wait."""
        command = [*(program or (str(Path(sys.executable).with_name("dpone")),)), *words]
        given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **rest}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, cwd="/", env=self.variables(), **given)

    def variables(self) -> dict[str, str]:
        """The environment of every process: nothing of the caller's own DPONE_ or Airflow variables."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DPONE_", "AIRFLOW", "COV", "PYTEST"))}
        return {**kept, "DPONE_HOME": str(self.home), "PYTHONPATH": str(ROOT), **self.environment}

    def composed(self, record: Path, action: str, words: Sequence[str], **rest: Any) -> subprocess.Popen[str]:
        """Start the command with the recording composition (see tests.crash.process)."""
        return self.start([str(record), action, *words], (*COMPOSED,), **rest)


def ended(process: subprocess.Popen[str], seconds: float = 60) -> Ended:
    """Wait for the end. A process that does not end in time is killed and the test fails."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it did not end within {seconds} s; stdout {out[:500]!r}, stderr {err[:500]!r}") from None
    out = out or ""  # None where the caller gave another stdout
    assert "Traceback" not in err + out, err[-3000:]
    assert CANARY not in err + out, "a row's value was printed"
    assert len(err.encode()) <= 4096 + 1, f"{len(err.encode())} bytes on stderr"
    return Ended(process.returncode, out, err)


def engine_rows(folder: Path, table: str = "rows") -> list[Row] | None:
    """All rows of the live table as they were written, by id; None when there is no such table."""
    with opened_engine(folder) as ask:
        if not ask(f"SELECT 1 AS one FROM system.tables WHERE database = 'db' AND name = '{table}'"):
            return None
        found = ask(f"SELECT id, name, toString(amount) AS amount, toString(at) AS at FROM db.{table} ORDER BY id")
        return [(row["id"], row["name"], f"{float(row['amount']):.2f}", row["at"]) for row in found]


def engine_tables(folder: Path) -> dict[str, str]:
    """Every table of the database with its UUID."""
    with opened_engine(folder) as ask:
        return {
            row["name"]: row["uuid"]
            for row in ask("SELECT name, toString(uuid) AS uuid FROM system.tables WHERE database = 'db'")
        }


@contextmanager
def opened_engine(folder: Path) -> Iterator[Any]:
    """Ask the engine in this process. A reader that was killed with its parent may hold the folder for a moment."""
    from dpone.adapters.clickhouse.embedded import EmbeddedPlatform
    from dpone.adapters.clickhouse.engine_session import ask

    platform = EmbeddedPlatform(folder, wait_seconds=10)
    platform.acquire()
    try:
        yield lambda statement: ask(platform._session, statement)
    finally:
        platform.release()
