"""Real workers on a real folder."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform
from dpone.adapters.reader import ProcessReader, worker
from dpone.domain.errors import ReaderFailed
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics, Observation, TableDefinition, TargetRef

pa = pytest.importorskip("pyarrow")

COLUMNS = (Column("n", "Int64"), Column("t`ext", "Nullable(String)"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``db.t`` with 1,000 rows, ``db.empty`` with none, and nobody holding the lock."""
    place = tmp_path_factory.mktemp("reader") / "engine"
    platform = EmbeddedPlatform(place)
    texts = [None if i % 10 == 0 else f"{i % 7}" for i in range(1000)]
    batch = pa.record_batch([pa.array(range(1000), pa.int64()), pa.array(texts)], [c.name for c in COLUMNS])
    for name, batches in (("t", [batch]), ("empty", [])):
        platform.create("db", name, TableDefinition(COLUMNS))
        platform.fill("db", name, COLUMNS, batches)
    platform.release()
    return place


@pytest.fixture(scope="module")
def plan(folder: Path) -> ReadPlan:
    return _plan(folder, "t")


def _plan(folder: Path, table: str, **changes: Any) -> ReadPlan:
    platform = EmbeddedPlatform(folder)
    identity = platform.look(TargetRef("", "db", table))[0].tables[table]
    platform.release()
    given = {
        "identities": {"embedded": identity},
        "metrics": Metrics(("t`ext",), ("n", "t`ext"), typed_hash=True),
        **changes,
    }
    return ReadPlan("db", table, columns=COLUMNS, **given)


def test_a_worker_counts_what_the_platform_counts(folder: Path, plan: ReadPlan) -> None:
    result = ProcessReader(folder).observe(plan)
    platform = EmbeddedPlatform(folder)
    assert result.observation == platform.observe("db", "t", COLUMNS, plan.metrics)
    platform.release()
    assert (result.observation.row_count, result.observation.null_counts) == (1000, {"t`ext": 100})
    assert result.observation.distinct_counts == {"n": 1000, "t`ext": 7}
    assert result.replica == "embedded"
    assert 0 < result.milliseconds < 60_000


def test_zero_rows_are_a_result(folder: Path) -> None:
    result = ProcessReader(folder).observe(_plan(folder, "empty"))
    assert result.observation == Observation(0, {"t`ext": 0}, {"n": 0, "t`ext": 0}, "v1:0:0")


def test_a_worker_merges_nothing(tmp_path: Path) -> None:
    """An opened folder begins to merge its parts: these are large enough for that to outlast its being stopped."""
    place, column = tmp_path / "engine", Column("n", "Int64")
    platform = EmbeddedPlatform(place)
    platform.create("db", "parts", TableDefinition((column,)))
    platform._run("stopping", "SYSTEM STOP MERGES")
    for part in range(8):
        platform._run("filling", f"INSERT INTO db.parts SELECT intHash64(number + {part}) FROM numbers(500000)")
    identity = platform.look(TargetRef("", "db", "parts"))[0].tables["parts"]
    platform.release()

    before = _parts(place)
    metrics = Metrics((), ("n",), typed_hash=True)
    plan = ReadPlan("db", "parts", {"embedded": identity}, (column,), metrics)
    assert ProcessReader(place).observe(plan).observation.row_count == 4_000_000
    assert (len(before), _parts(place)) == (8, before)


def _parts(place: Path) -> set[str]:
    """Finished parts, and those that a merge left unfinished."""
    return {found.parent.name for found in place.glob("store/*/*/*all_*/*")}


def test_a_warmed_worker_idles_for_free_and_holds_nothing(folder: Path, plan: ReadPlan) -> None:
    reader = ProcessReader(folder, budget=4)
    reader.warm()
    time.sleep(4.1)  # longer than the budget
    platform = EmbeddedPlatform(folder, wait_seconds=0)
    platform.acquire()
    platform.release()
    assert reader.observe(plan).observation.row_count == 1000


def test_a_warmed_worker_that_died_is_replaced(folder: Path, plan: ReadPlan) -> None:
    reader = ProcessReader(folder)
    reader.warm()
    os.kill(_pid(reader), signal.SIGKILL)
    time.sleep(0.2)
    assert reader.observe(plan).observation.row_count == 1000


def test_close_ends_an_unused_worker(folder: Path) -> None:
    reader = ProcessReader(folder)
    reader.warm()
    pid = _pid(reader)
    reader.close()
    reader.close()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("part", ["id", "digest"])
def test_another_table_is_not_read(folder: Path, plan: ReadPlan, part: str) -> None:
    identity = replace(plan.identities["embedded"], **{part: "other"})
    with pytest.raises(ReaderFailed, match="not any more") as caught:
        ProcessReader(folder).observe(_plan(folder, "t", identities={"embedded": identity}))
    assert (caught.value.reaped, caught.value.fits) == (True, True)


def test_a_locked_folder_is_waited_for_within_the_budget(folder: Path, plan: ReadPlan) -> None:
    platform = EmbeddedPlatform(folder)
    platform.acquire()
    try:
        with pytest.raises(ReaderFailed, match="locked") as caught:
            ProcessReader(folder, budget=3).observe(plan)
    finally:
        platform.release()
    assert (caught.value.reaped, caught.value.fits) == (True, True)


def test_a_scan_that_does_not_fit_is_told_apart(folder: Path) -> None:
    rows = 3_000_000
    columns = tuple(Column(f"c{i}", "Int64") for i in range(6))
    platform = EmbeddedPlatform(folder)
    platform.create("db", "large", TableDefinition(columns))
    values = ", ".join(f"intHash64(number + {i})" for i in range(6))
    platform._run("filling", f"INSERT INTO db.large SELECT {values} FROM numbers({rows})")
    identity = platform.look(TargetRef("", "db", "large"))[0].tables["large"]
    platform.release()
    names = tuple(column.name for column in columns)
    plan = ReadPlan("db", "large", {"embedded": identity}, columns, Metrics((), names, typed_hash=True))
    reader = _started_quickly(folder, budget=1.2)
    with pytest.raises(ReaderFailed) as caught:
        reader.observe(plan)
    assert (caught.value.reaped, caught.value.fits) == (True, False), str(caught.value)
    again = EmbeddedPlatform(folder, wait_seconds=0)
    again.acquire()  # the folder is free at once
    again.release()


def test_next_to_no_time_is_not_taken_for_no_limit() -> None:
    assert "max_execution_time = 0.001," in worker._limits(0.0002)


def test_the_worker_sees_no_secret_and_no_terminal(
    folder: Path, plan: ReadPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPONE_CONN_X_PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.xml").write_text("<broken")
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    reader = ProcessReader(folder)
    reader.warm()
    pid = _pid(reader)
    time.sleep(0.5)
    assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert b"DPONE" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert {Path(f"/proc/{pid}/fd/{number}").readlink() for number in (0, 1, 2)} == {Path("/dev/null")}
    assert os.getpgid(pid) == pid
    assert reader.observe(plan).observation.row_count == 1000


@pytest.fixture
def alarm() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_a_signal_ends_the_wait_and_the_worker(folder: Path, plan: ReadPlan) -> None:
    never = (sys.executable, "-c", "import time; time.sleep(60)")
    reader = ProcessReader(folder, command=never)
    reader.warm()
    pid = _pid(reader)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        reader.observe(plan)
    assert time.monotonic() - started < 1.5
    assert not Path(f"/proc/{pid}").exists()


_PARENT = """
import sys
from pathlib import Path
from dpone.adapters.reader import ProcessReader
from dpone.domain.ports import ReadPlan
from dpone.domain.tables import Column, Metrics, TableIdentity
reader = ProcessReader(Path(sys.argv[1]))
reader.warm()
print(reader._waiting[0]._process.pid, flush=True)
reader.observe(ReadPlan("db", "t", {"embedded": TableIdentity("id", "digest")}, (Column("n", "Int64"),), Metrics()))
"""


def test_a_worker_dies_with_its_parent_also_when_it_has_its_plan(folder: Path) -> None:
    platform = EmbeddedPlatform(folder)
    platform.acquire()  # the worker waits for the folder
    try:
        command = [sys.executable, "-c", _PARENT, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            time.sleep(1.0)
            assert _running(pid)
            parent.kill()
        deadline = time.monotonic() + 5
        while _running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not _running(pid)
    finally:
        platform.release()


def test_a_program_that_is_not_there_is_said(folder: Path, plan: ReadPlan) -> None:
    with pytest.raises(ReaderFailed, match="could not be started") as caught:
        ProcessReader(folder, command=("/no/such/program",)).observe(plan)
    assert caught.value.reaped is True


def _started_quickly(folder: Path, budget: float) -> ProcessReader:
    """A warmed reader whose start took at most half of its budget, so that the scan is what does not fit."""
    for _ in range(10):
        reader = ProcessReader(folder, budget=budget)
        began = time.monotonic()
        reader.warm()
        ready = select.poll()
        ready.register(reader._waiting[0]._ready, select.POLLIN)
        ready.poll(30_000)
        if time.monotonic() - began < budget / 2:
            return reader
        reader.close()
    pytest.fail("no worker started within half of the budget: the machine is too busy for this test")


def _pid(reader: ProcessReader) -> int:
    assert reader._waiting[0]._process is not None
    return reader._waiting[0]._process.pid


def _running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
