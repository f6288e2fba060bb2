"""Parses DAG files in a process in which reading a connection or a variable is an error.

``python -m tests.integration.airflow.parsing REPORT FILE…``: for each file the DAGs that it made, import errors, and
which modules of dpone and which heavy packages are there afterwards. Files are parsed in order, in one process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

HEAVY = ("chdb", "pyarrow", "eventsourcing", "kazoo", "clickhouse_driver", "psycopg", "numpy")


class ReadWhileParsing(Exception):
    """A DAG file read what only a running task may read."""


def refuse(*words: object, **named: object) -> NoReturn:
    raise ReadWhileParsing


def parsed(file: str) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(file)
    return {
        "dags": sorted(bag.dags),
        "import_errors": bag.import_errors,
        "ours": sorted(name for name in sys.modules if name.split(".")[0] == "dpone"),
        "heavy": sorted(name for name in HEAVY if name in sys.modules),
    }


def main(report: str, files: list[str]) -> None:
    from airflow.models.connection import Connection
    from airflow.sdk import BaseHook, Variable

    Variable.get = refuse
    BaseHook.get_connection = refuse
    Connection.get_connection_from_secrets = refuse
    Path(report).write_text(json.dumps([parsed(file) for file in files]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
