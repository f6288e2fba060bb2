"""What a DAG file with a load costs Airflow's parser beyond one with an empty operator."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from .row import Row, timed

_PROGRAM = """
import json, os, sys, tempfile, time

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp()
from airflow.sdk import DAG, BaseOperator

class Empty(BaseOperator):
    def execute(self, context):
        return None

def parsed(make):
    began = time.process_time()
    with DAG("one", schedule=None):
        make()
    return time.process_time() - began

def load():
    from dpone.adapters.airflow import DponeRunOperator

    DponeRunOperator(task_id="load", manifest="one.batch.yaml")

def empty():
    Empty(task_id="load")

parsed(empty)
first = parsed(load)
print(json.dumps({"first": (first - parsed(empty)) * 1e3, "later": (parsed(load) - parsed(empty)) * 1e3}))
"""


def operator(rounds: int) -> Iterator[Row]:
    """CPU milliseconds: in a parser's fresh process, which imports the operator's module, and in one that has it."""
    if find_spec("airflow") is None:
        print("parsing a DAG: not measured, Airflow is not installed (scripts/setup airflow)")
        return
    found = [json.loads(timed([sys.executable, "-c", _PROGRAM]).out) for _ in range(rounds)]
    for name, which in (("a fresh parser", "first"), ("a later file", "later")):
        yield Row(f"a load in a DAG, {name}, CPU", "ms", tuple(one[which] for one in found), 2.0)
