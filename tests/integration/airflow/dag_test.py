"""Parses the DAGs folder, runs the DAGs that are named with ``dag.test()``, and writes down what Airflow keeps of it.

``python -m tests.integration.airflow.dag_test REPORT DAG…``: a process of its own, for Airflow reads its settings when
it is imported.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def report_on(names: list[str]) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    runs = {name: _ran(bag.dags[name]) for name in names}
    return {"import_errors": bag.import_errors, "runs": runs, "events": _events(), "shape": _shape(bag)}


def _ran(dag: Any) -> dict[str, Any]:
    run = dag.test()
    tasks = []
    for ti in sorted(run.get_task_instances(), key=lambda ti: (ti.task_id, ti.map_index)):
        pulled = ti.xcom_pull(task_ids=ti.task_id, map_indexes=ti.map_index)
        link = ti.xcom_pull(task_ids=ti.task_id, map_indexes=ti.map_index, key="_link_DponeAuditLink")
        tasks.append(
            {
                "task": ti.task_id,
                "index": ti.map_index,
                "state": ti.state,
                "try": ti.try_number,
                "xcom": pulled,
                "link": link,
            }
        )
    return {"state": str(run.state), "run_id": run.run_id, "tasks": tasks}


def _events() -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        return [{"dag": event.source_dag_id, "extra": event.extra} for event in session.query(AssetEvent)]


def _shape(bag: Any) -> dict[str, Any]:
    return {
        name: {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks} for name, dag in bag.dags.items()
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(report_on(sys.argv[2:]), default=str))
