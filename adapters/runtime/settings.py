"""What the environment says, read once, by the composition root and nobody else."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ... import __version__
from ...domain.errors import DponeError, ErrorCode
from ...domain.events import By
from ...domain.identity import NO_TASK, Task, identity_problem

if TYPE_CHECKING:
    from ..connections.connection import Connection, Provider

_TEXT_MAX = 200
_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are, and who asks. ``ledger_option`` is what was typed, None when the default holds.

    ``environ`` may hold passwords: it is for the providers of connections alone, and never shown. ``provider`` is a
    program's own, asked after those.
    """

    home: Path
    ledger_url: str
    ledger_option: str | None
    by: By
    revision: str | None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # connections are bound late, from this
    provider: Provider | None = field(default=None, repr=False)

    def connection(self, reference: str) -> Connection:
        """The connection of this name, by the first provider that knows it. Raises DponeError."""
        from ..connections.resolving import resolve

        return resolve(reference, self.environ, self.provider)


@dataclass(frozen=True, slots=True)
class Identity:
    """The run that a command belongs to. ``fresh`` tells that nobody named it, so that repeating is not recovery."""

    dag_id: str
    run_id: str
    fresh: bool = False
    task: Task = NO_TASK


def settings_from(environ: Mapping[str, str], ledger_option: str | None) -> Settings:
    """Read home, ledger and revision."""
    home = _home(environ)
    named = ledger_option or environ.get("DPONE_LEDGER") or None
    return Settings(
        home=home,
        ledger_url=named or _default_ledger(home),
        ledger_option=named,
        by=By(os_user=_os_user(), host=os.uname().nodename[:_TEXT_MAX], version=__version__),
        revision=_bounded(environ.get("DPONE_REVISION")),
        environ=environ,
    )


def identity_from(environ: Mapping[str, str], dag_id: str | None, run_id: str | None) -> Identity:
    """Who the run is, all parts from one origin: options, else DPONE_*, else Airflow's context, else a fresh run.

    Raises DponeError (DPONE_REQUEST_INVALID) for parts that are refused; nothing is ever trimmed.
    """
    if dag_id is not None or run_id is not None:
        found = _named(dag_id, run_id, "--dag-id", "--run-id")
    elif "DPONE_DAG_ID" in environ or "DPONE_RUN_ID" in environ:
        found = _named(environ.get("DPONE_DAG_ID"), environ.get("DPONE_RUN_ID"), "DPONE_DAG_ID", "DPONE_RUN_ID")
    elif "AIRFLOW_CTX_DAG_ID" in environ or "AIRFLOW_CTX_DAG_RUN_ID" in environ:
        found = _named(
            environ.get("AIRFLOW_CTX_DAG_ID"),
            environ.get("AIRFLOW_CTX_DAG_RUN_ID"),
            "AIRFLOW_CTX_DAG_ID",
            "AIRFLOW_CTX_DAG_RUN_ID",
        )
    else:
        found = Identity("manual", str(uuid4()), fresh=True)
    task = Task(
        task_id=_bounded(environ.get("AIRFLOW_CTX_TASK_ID")),
        map_index=_whole(environ.get("DPONE_MAP_INDEX")),
        try_number=_whole(environ.get("AIRFLOW_CTX_TRY_NUMBER")),
    )
    return Identity(found.dag_id, found.run_id, found.fresh, task)


def _whole(text: str | None) -> int | None:
    """A number that somebody else's system may have given; anything else is none."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def _named(dag_id: str | None, run_id: str | None, dag_name: str, run_name: str) -> Identity:
    if run_id is None:
        raise _refused(f"{dag_name} is given without {run_name}: a dag id alone names no run.", run_name)
    dag_id = "manual" if dag_id is None else dag_id
    for name, value in ((dag_name, dag_id), (run_name, run_id)):
        problem = identity_problem(f"value of {name}", value)
        if problem is not None:
            raise _refused(problem, name)
    return Identity(dag_id, run_id)


def _refused(what: str, name: str) -> DponeError:
    return DponeError(ErrorCode.REQUEST_INVALID, what, next=f"Give {name} 1 to 250 printable characters.")


def _home(environ: Mapping[str, str]) -> Path:
    named = environ.get("DPONE_HOME")
    if named:
        return Path(named).absolute()
    from platformdirs import user_state_path

    return user_state_path("dpone", appauthor=False)


def _default_ledger(home: Path) -> str:
    from ...ledger.sqlite import sqlite_url

    return sqlite_url(home / "ledger.sqlite")


def _os_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _bounded(text: str | None) -> str | None:
    return text[:_TEXT_MAX] if text else None
