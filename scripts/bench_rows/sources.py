"""Each source beside the fastest plain way a user has for the same move into the same engine.

What counts for the product is the time from opening the candidate to its evidence: reading, checking, counting on the
way, inserting, and the reader process that counts the candidate again. The plain way is one statement.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .loads import fresh, run_words, staged_seconds
from .records import COLUMNS, POSTGRES, records
from .row import BENCH, Row, timed

ROWS: Final = 5_000_000  # so many that what a load costs whatever its size does not decide
_FEWER: Final = {"sqlite": 1_000_000}  # the slowest way
_MEMORY_ROWS: Final = 600_000
_WHOLE_GROUP: Final = {"parquet": 1_100_000}  # the engine writes groups of a million rows, which are read whole
_PLAIN: Final = (sys.executable, "-m", "scripts.bench_rows.plain_move")
_STAGED: Final = (sys.executable, "-m", "scripts.bench_rows.staged_move")
_FILE: Final = {"csv": "CSVWithNames", "parquet": "Parquet", "arrow": "Arrow"}


@dataclass(frozen=True, slots=True)
class Move:
    """One source of so many rows: the manifest's block and its environment, and the plain way."""

    source: Mapping[str, Any]
    environment: Mapping[str, str]
    selected: str
    command: tuple[str, ...] = ()


Opened = contextlib.AbstractContextManager[Callable[[int], Move]]


def speed(rounds: int) -> Iterator[Row]:
    """Rows/s from each source to staged evidence ÷ the plain way's; and the CPU that each takes, in one process."""
    for name, opened in SOURCES.items():
        target = 0.4 if name == "csv" else 0.6
        rows = _FEWER.get(name, ROWS)
        with opened() as move_of:
            move = move_of(rows)
            pairs = [_pair(move, _manifest(name, move, rows), number) for number in range(rounds + 1)]
        kept = pairs[1:]  # the first pair warms the caches
        ratios = tuple(pair.plain / pair.staged for pair in kept)
        yield Row(f"{name} to staged evidence ÷ plain", "× rows/s", ratios, target, at_most=False)
        cpu = tuple(pair.plain_cpu / pair.staged_cpu for pair in kept)
        yield Row(f"{name} to staged evidence ÷ plain, CPU", "× rows/s", cpu, target, at_most=False)
        rates = tuple(rows / pair.staged / 1e6 for pair in kept)
        yield Row(f"{name} to staged evidence", "M rows/s", rates, 0.0, at_most=False)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Seconds of one load and one plain move, right after another."""

    staged: float
    staged_cpu: float
    plain: float
    plain_cpu: float


def _pair(move: Move, manifest: Path, number: int) -> _Pair:
    home = fresh("source")
    timed(run_words(manifest, f"r{number}"), {"DPONE_HOME": str(home), **move.environment})
    plain, plain_cpu = timed([*_PLAIN, str(fresh("source-plain")), move.selected, *move.command]).out.split()
    alone = timed([*_STAGED, str(manifest), str(fresh("source-staged"))], move.environment)
    return _Pair(staged_seconds(home), float(alone.out), float(plain), float(plain_cpu))


def memory(rounds: int) -> Iterator[Row]:
    """Peak memory of reading each source at ten times the rows ÷ at one; the engine's is measured with whole loads."""
    for name, opened in SOURCES.items():
        with opened() as move_of:
            rows, ratios = _WHOLE_GROUP.get(name, _MEMORY_ROWS), []
            for _ in range(max(1, rounds // 3)):
                peaks = [_peak(name, move_of(count), count) for count in (rows, 10 * rows)]
                ratios.append(peaks[1] / peaks[0])
        yield Row(f"reading {name}, peak memory, 10× ÷ 1× the rows", "×", tuple(ratios), 1.15)


def _peak(name: str, move: Move, rows: int) -> float:
    # The distinct values of a key are the one thing whose memory may grow with the rows.
    manifest = _manifest(name, move, rows, distinct="customer")
    return timed([*_STAGED, str(manifest)], move.environment).peak


def full_refresh(source: Mapping[str, Any], table: str = "records", distinct: str = "record_id") -> dict[str, Any]:
    """A process with the gates and observations of the examples."""
    checks = {"row_count": True, "null_counts": [distinct], "distinct_counts": [distinct]}
    capture = {"source": True, "staged": True, "target": True}
    physical = {"storage": {"clickhouse": {"order_by": ["record_id"]}}}
    sink = {
        "type": "clickhouse",
        "connection_ref": "embedded",
        "table": {"schema": "bench", "name": table},
        "columns": dict(COLUMNS),
        "strategy": {"mode": "full_refresh"},
        "options": {"durable_quality_replay": True, "physical_design": physical},
    }
    quality = {
        "gates": [{"type": "row_count_reconciliation"}],
        "acceptance": {"enabled": True, "mode": "required", "capture": capture, "checks": checks},
    }
    return {"name": "records", "source": dict(source), "sink": sink, "quality": quality}


def _manifest(name: str, move: Move, rows: int, distinct: str = "record_id") -> Path:
    process = full_refresh(move.source, distinct=distinct)
    path = BENCH / f"{name}-{rows}-{distinct}.flow.yaml"
    path.write_text(json.dumps({"kind": "dpone.flow.v1", "metadata": {"id": "bench"}, "processes": [process]}))
    return path


@contextlib.contextmanager
def _of_file(kind: str, options: Mapping[str, Any] | None = None) -> Iterator[Callable[[int], Move]]:
    def move_of(rows: int) -> Move:
        path = records(kind, rows)
        source = {"type": kind, "path": str(path), "options": dict(options or {})}
        return Move(source, {}, f"file('{path}', '{_FILE[kind]}', $${{structure}}$$)")

    yield move_of


@contextlib.contextmanager
def _sqlite() -> Iterator[Callable[[int], Move]]:
    def move_of(rows: int) -> Move:
        path = records("sqlite", rows)
        source = {"type": "sqlite", "path": str(path), "table": {"schema": "main", "name": "records"}}
        return Move(source, {}, f"sqlite('{path}', 'records')")

    yield move_of


@contextlib.contextmanager
def _clickhouse() -> Iterator[Callable[[int], Move]]:
    from tests.servers.clickhouse import PASSWORD, clickhouse_server

    with clickhouse_server() as server:
        client = (str(shutil.which("clickhouse-client")), "--port", str(server.port))

        def move_of(rows: int) -> Move:
            table = f"records_{rows}"
            columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            server.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE = MergeTree ORDER BY record_id")
            if server.execute(f"SELECT count() FROM {table}") == [(0,)]:
                insert = [*client, "--query", f"INSERT INTO {table} FORMAT TSV"]
                _fed(insert, records("tsv", rows))
                server.execute(f"OPTIMIZE TABLE {table} FINAL")
            stem = "DPONE_CONN_BENCH"
            environment = {f"{stem}_HOST": "127.0.0.1", f"{stem}_PORT": str(server.port), f"{stem}_USERNAME": "reader"}
            source = {"type": "clickhouse", "connection_ref": "bench", "table": {"schema": "default", "name": table}}
            return Move(
                source,
                {**environment, f"{stem}_PASSWORD": PASSWORD},
                "file('{pipe}', 'Native', $${structure}$$)",
                (*client, "--query", f"SELECT * FROM {table} FORMAT Native"),
            )

        yield move_of


@contextlib.contextmanager
def _postgres() -> Iterator[Callable[[int], Move]]:
    from tests.servers.postgres import PASSWORD, postgres_server

    with postgres_server() as server:
        url = f"postgresql://reader:{PASSWORD}@127.0.0.1:{server.port}/postgres"
        psql = (str(shutil.which("psql")), url, "--quiet", "--command")

        def move_of(rows: int) -> Move:
            table = f"records_{rows}"
            if server.execute(f"SELECT to_regclass('{table}') IS NULL") == [(True,)]:
                server.execute(f"CREATE TABLE {table} ({POSTGRES})")
                _fed([*psql, f"COPY {table} FROM STDIN"], records("tsv", rows))
                server.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
            source = {"type": "postgres", "connection_ref": "bench", "table": {"schema": "public", "name": table}}
            return Move(
                source,
                {"DPONE_CONN_BENCH_URL": url},
                "file('{pipe}', 'TSV', $${structure}$$)",
                (*psql, f"COPY (SELECT * FROM {table}) TO STDOUT"),
            )

        yield move_of


def _fed(command: list[str], file: Path) -> None:
    with file.open("rb") as rows:
        subprocess.run(command, stdin=rows, check=True)


SOURCES: Final[Mapping[str, Callable[[], Opened]]] = {
    "clickhouse": _clickhouse,
    "postgres": _postgres,
    "sqlite": _sqlite,
    "csv": lambda: _of_file("csv", {"null_values": ["\\N"]}),
    "parquet": lambda: _of_file("parquet"),
    "arrow": lambda: _of_file("arrow"),
}
