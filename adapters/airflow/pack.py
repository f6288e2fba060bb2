"""A DAG from a flow manifest: one task a process, after the tasks of those it depends on. Purely declarative.

The flow's file and its fragments are read while the DAG is parsed; no connection, variable, client or ledger is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from ...domain.errors import DponeError, ErrorCode
from .operator import DponeRunOperator

if TYPE_CHECKING:
    from airflow.sdk import Asset

    from ..manifest.load import Manifest

_NOT_IN_A_TASK_ID = re.compile(r"[^\w.-]")


def dpone_dag(
    flow: str | Path,
    *,
    dag_id: str | None = None,
    ledger: str | None = None,
    audit_url: str | None = None,
    outlets: Mapping[str, Iterable[Asset]] | None = None,
    task_args: Mapping[str, Any] | None = None,
    **dag_args: Any,
) -> DAG:
    """The DAG of a flow: call it at the top level of a DAG file, and keep what it returns in a variable there.

    ``flow`` is the manifest's path; a relative one starts at the calling file's folder. ``dag_id`` defaults to the
    flow's ``metadata.id``. ``outlets`` names assets by process. ``task_args`` go to every task, ``dag_args`` to the
    DAG, which by default has no schedule, no catch-up and one active run (a later run displaces an earlier one that
    has not published). Raises DponeError for a manifest that is not a flow or not valid; Airflow shows it as the
    file's import error.
    """
    caller = sys._getframe(1).f_code.co_filename
    loaded = _loaded(Path(caller).parent / flow)
    dag = DAG(
        dag_id=dag_id or loaded.flow_id,
        **{"schedule": None, "catchup": False, "max_active_runs": 1, **dag_args},
    )
    dag.fileloc = caller  # where a relative manifest starts, on the worker as well
    assets = dict(outlets or {})
    tasks = {
        process.selector: DponeRunOperator(
            task_id=_task_id(process.name),
            manifest=flow,
            selector=process.selector,
            ledger=ledger,
            audit_url=audit_url,
            dag=dag,
            outlets=list(assets.pop(process.name, ())),
            **dict(task_args or {}),
        )
        for process in loaded.processes
    }
    if assets:
        raise _refused(f"outlets names processes that the flow does not have: {', '.join(sorted(assets))}.")
    for process in loaded.processes:
        for earlier in process.depends_on:
            tasks[process.selector].set_upstream(tasks[earlier])
    return dag


def _loaded(path: Path) -> Manifest:
    from ..manifest.load import load_manifest

    loaded = load_manifest(path)
    if loaded.flow_id is None:
        raise _refused(f"{path.name} is not a flow: a DAG is built from kind: dpone.flow.v1.")
    ids = [_task_id(process.name) for process in loaded.processes]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise _refused(f"Processes of {path.name} have names that are one task id in Airflow: {', '.join(twice)}.")
    return loaded


def _task_id(name: str) -> str:
    """The process's name, with ``_`` for what Airflow does not allow in a task id."""
    return _NOT_IN_A_TASK_ID.sub("_", name)


def _refused(what: str) -> DponeError:
    return DponeError(
        ErrorCode.MANIFEST_INVALID, what, safe="Nothing was read or changed.", next="Correct the DAG file."
    )
