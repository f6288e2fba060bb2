"""The driver's import: quick, and without a trace in the environment of the program that calls us."""

from __future__ import annotations

import subprocess
import sys

_AT_ONCE = """
import os, threading
from dpone.adapters.connections.clickhouse import driver
before = dict(os.environ)
start, seen = threading.Barrier(8), []
def call():
    start.wait()
    for _ in range(200):
        seen.append(driver().__name__)
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
from clickhouse_driver.columns.datecolumn import DateColumn
print(len(seen), len(DateColumn.date_lut), dict(os.environ) == before)
"""


def test_threads_that_need_the_driver_at_once_leave_the_environment_as_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["1600", "1", "True"]), done.stderr[-2000:]
