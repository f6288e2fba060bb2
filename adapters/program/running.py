"""One process of a manifest, run by a program: the same loop as ``dpone run``, without a terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...domain.errors import DponeError, ErrorCode
from ...domain.identity import Task
from ...domain.outcome import Asked, Done, document
from .outcome import Outcome

if TYPE_CHECKING:
    from ..connections.connection import Provider
    from ..runtime.attempt import Reporter
    from ..runtime.compose import Composer
    from ..runtime.execution import Execution, Interrupted


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be run, and as whom. The task's parts are recorded, never part of the identity."""

    manifest: Path
    selector: str | None = None
    dag_id: str | None = None
    run_id: str | None = None
    ledger: str | None = None
    task: Task | None = None


def run(
    manifest: str | Path,
    selector: str | None = None,
    *,
    dag_id: str | None = None,
    run_id: str | None = None,
    ledger: str | None = None,
    environ: Mapping[str, str] | None = None,
    provider: Provider | None = None,
    composer: Composer | None = None,
) -> Outcome:
    """Load one process of a manifest durably, or continue the operation that these ids name.

    ``environ`` stands in for the environment (home, ledger, ids, connections). ``provider`` is asked for a connection
    that the environment, Airflow and ``connections.toml`` do not know. ``composer`` replaces the wiring of the ports.
    Expected endings are in the outcome; nothing is raised for them. No signal handler is installed: a program that is
    killed continues by calling again with the same ids.
    """
    asked = Request(Path(manifest), selector, dag_id, run_id, ledger)
    return perform(asked, environ=os.environ if environ is None else environ, provider=provider, composer=composer)


def perform(
    request: Request,
    *,
    environ: Mapping[str, str],
    provider: Provider | None = None,
    composer: Composer | None = None,
    reporter: Reporter | None = None,
) -> Outcome:
    """Run a request to its outcome, also when a signal handler raises Interrupted on the way."""
    from ..runtime.execution import Interrupted

    asked = Asked(
        manifest=str(request.manifest), selector=request.selector, dag_id=request.dag_id, run_id=request.run_id
    )
    execution: Execution | None = None
    try:
        execution = _prepared(request, environ, provider, composer, reporter)
        execution.begin()
        error = execution.run()
        execution.close()
    except Interrupted as stop:
        return _stopped(execution, asked, stop)
    except DponeError as refused:
        return Outcome.of(document(asked, Done(), refused), refused.exit_code)
    return Outcome.of(execution.document(error), 0 if error is None else error.exit_code)


def _prepared(
    request: Request,
    environ: Mapping[str, str],
    provider: Provider | None,
    composer: Composer | None,
    reporter: Reporter | None,
) -> Execution:
    from ..manifest.load import load_manifest
    from ..runtime.compose import compose
    from ..runtime.execution import Execution
    from ..runtime.settings import identity_from, settings_from

    loaded = load_manifest(request.manifest)
    process = loaded.select(request.selector)
    identity = identity_from(environ, request.dag_id, request.run_id)
    if request.task is not None:
        identity = replace(identity, task=request.task)
    return Execution(
        manifest=str(request.manifest),
        manifest_sha256=loaded.sha256,
        process=process,
        identity=identity,
        settings=replace(settings_from(environ, request.ledger), provider=provider),
        composer=composer or compose,
        reporter=reporter or Silence(),
    )


def _stopped(execution: Execution | None, asked: Asked, stop: Interrupted) -> Outcome:
    if execution is not None:
        execution.abandon()
        return Outcome.of(execution.document(execution.interrupted(stop)), stop.exit_code)
    error = DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"Stopped by {stop.signal_name} before the work began.",
        next="Repeat the same command.",
        exit_code=stop.exit_code,
    )
    return Outcome.of(document(asked, Done(), error), error.exit_code)


class Silence:
    """A reporter that tells nobody."""

    def step(self, step: object) -> None:
        return None

    def rows(self, rows: int, source_bytes: int) -> None:
        return None

    def stop(self) -> None:
        return None
