"""``dpone run``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...domain.errors import DponeError
from ...domain.outcome import Asked, Done, document, warnings
from .output import diagnose, format_option, ledger_option, print_document, write

if TYPE_CHECKING:
    from ..runtime.compose import Composer
    from ..runtime.execution import Execution


@click.command(short_help="Load a table durably.")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--selector", metavar="S", help="Which process of the manifest; needed when it has several.")
@click.option("--dag-id", metavar="D", help="With --run-id: the operation's identity. Default: manual.")
@click.option("--run-id", metavar="R", help="Name the run, so that the same command continues it.")
@ledger_option
@format_option
@click.pass_obj
def run(
    composer: Composer | None,
    manifest: Path,
    selector: str | None,
    dag_id: str | None,
    run_id: str | None,
    ledger: str | None,
    output: str,
) -> int:
    """Load one process of MANIFEST: read once, check, publish by one swap, observe, complete.

    Repeat the same command after any interruption: it continues from the recorded events. A completed run is only
    validated: nothing is read or published.
    """
    asked = Asked(manifest=str(manifest), selector=selector, dag_id=dag_id, run_id=run_id)
    try:
        execution = _prepared(asked, manifest, ledger, composer, output)
    except DponeError as error:
        if output == "json":
            print_document(document(asked, Done(), error))
        diagnose(error)
        return error.exit_code
    return _execute(execution, output)


def _prepared(asked: Asked, manifest: Path, ledger: str | None, composer: Composer | None, output: str) -> Execution:
    from ..manifest.load import load_manifest
    from ..runtime.compose import compose
    from ..runtime.execution import Execution
    from ..runtime.settings import identity_from, settings_from
    from .progress import reporter

    loaded = load_manifest(manifest)
    process = loaded.select(asked.selector)
    identity = identity_from(os.environ, asked.dag_id, asked.run_id)
    return Execution(
        manifest=str(manifest),
        manifest_sha256=loaded.sha256,
        process=process,
        identity=identity,
        settings=settings_from(os.environ, ledger),
        composer=composer or compose,
        reporter=reporter(output),
    )


def _execute(execution: Execution, output: str) -> int:
    from ..runtime.execution import Interrupted
    from .interrupts import interruptible

    try:
        with interruptible():
            error = execution.run()
            execution.reporter.stop()
            execution.close()
            _show(execution, error, output)
    except Interrupted as stop:
        execution.reporter.stop()
        error = execution.interrupted(stop)
        execution.abandon()
        _show(execution, error, output)
        sys.stdout.flush()
        os._exit(error.exit_code)  # a query may still run in the engine's thread and nothing can interrupt it
    return 0 if error is None else error.exit_code


def _show(execution: Execution, error: DponeError | None, output: str) -> None:
    if output == "json":
        print_document(execution.document(error))
    else:
        _show_text(execution, error)
    if error is not None:
        diagnose(error)


def _show_text(execution: Execution, error: DponeError | None) -> None:
    from .story import closing, opening, print_story

    running = execution.running
    if running is None:
        return
    operation = running.operation
    replayed = operation.validated_attempt == running.attempt.fence and running.attempt.fence is not None
    first = opening(replayed, error is None, running.counters.extracted_rows)
    if first is not None:
        write(first)
    last = closing(operation, error) + [f"Warning: {warning}" for warning in warnings(operation)]
    if execution.identity.fresh:
        last.append(
            "This run had no id: repeating the command as typed is a new run, not a recovery. To name this one:\n"
            f"  {execution.same_command}"
        )
    print_story(operation, execution.history, last)
