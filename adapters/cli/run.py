"""``dpone run``: one process of a manifest, or all of them in the order of what they depend on."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError, ErrorCode
from ...domain.outcome import Asked, Done, document
from .output import diagnose, format_option, ledger_option, print_document

if TYPE_CHECKING:
    from ...domain.configuration import Process
    from ..runtime.compose import Composer
    from ..runtime.execution import Execution, Interrupted


@click.command(short_help="Load a table durably.")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--selector", metavar="S", help="Which process of the manifest; needed when it has several.")
@click.option("--all", "every", is_flag=True, help="Run every process, each after those it depends on.")
@click.option("--dag-id", metavar="D", help="With --run-id: the operation's identity. Default: manual.")
@click.option("--run-id", metavar="R", help="Name the run, so that the same command continues it.")
@ledger_option
@format_option
@click.pass_obj
def run(
    composer: Composer | None,
    manifest: Path,
    selector: str | None,
    every: bool,
    dag_id: str | None,
    run_id: str | None,
    ledger: str | None,
    output: str,
) -> int:
    """Load one process of MANIFEST: read once, check, publish by one swap, observe, complete.

    Repeat the same command after any interruption: it continues from the recorded events. A completed run is only
    validated: nothing is read or published.
    """
    from ..runtime.execution import Interrupted
    from .interrupts import interruptible

    asked = Asked(manifest=str(manifest), selector=selector, dag_id=dag_id, run_id=run_id)
    batch = _Batch(asked, output, every)
    try:
        with interruptible():
            batch.prepare(manifest, ledger, composer)
            batch.run()
    except DponeError as error:
        batch.refused(error)
    except Interrupted as stop:
        batch.interrupted(stop)
        sys.stdout.flush()
        os._exit(stop.exit_code)  # a query may still run in the engine's thread and nothing can interrupt it
    return batch.finish()


@dataclass(slots=True)
class _Batch:
    """The processes that one command runs, and what came of each."""

    asked: Asked
    output: str
    every: bool
    waiting: list[Execution] = field(default_factory=list)
    current: Execution | None = None
    documents: list[dict[str, Any]] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    worst: int = 0

    def prepare(self, manifest: Path, ledger: str | None, composer: Composer | None) -> None:
        """Read the manifest and everything that decides who the runs are. Raises DponeError."""
        from ..manifest.load import load_manifest
        from ..runtime.compose import compose
        from ..runtime.execution import Execution
        from ..runtime.settings import identity_from, settings_from
        from .progress import reporter

        if self.every and self.asked.selector is not None:
            raise DponeError(ErrorCode.REQUEST_INVALID, "--all and --selector exclude each other.", next="Use one.")
        loaded = load_manifest(manifest)
        processes = loaded.in_dependency_order() if self.every else (loaded.select(self.asked.selector),)
        identity = identity_from(os.environ, self.asked.dag_id, self.asked.run_id)
        settings = settings_from(os.environ, ledger)
        self.waiting = [
            Execution(
                manifest=str(manifest),
                manifest_sha256=loaded.sha256,
                process=process,
                identity=identity,
                settings=settings,
                composer=composer or compose,
                reporter=reporter(self.output),
            )
            for process in processes
        ]

    def run(self) -> None:
        """Run what can be run; a failure stops only what depends on it."""
        while self.waiting:
            execution = self.current = self.waiting.pop(0)
            execution.begin()
            error = _not_run(execution.process, self.failed) or execution.run()
            execution.reporter.stop()
            execution.close()
            self._ended(execution, error)

    def refused(self, error: DponeError) -> None:
        """The request itself was wrong: nothing was run."""
        self.worst = error.exit_code
        self.documents.append(document(self.asked, Done(), error))
        diagnose(error)

    def interrupted(self, stop: Interrupted) -> None:
        """A signal: reap the reader, print what is known, leave."""
        if self.current is None:
            self.refused(_stopped(stop))
        else:
            self.current.reporter.stop()
            self.current.abandon()
            self._ended(self.current, self.current.interrupted(stop))
        self.finish()

    def finish(self) -> int:
        """Print the one document and return the exit code: the worst of all."""
        if self.output == "json" and self.every:
            passed = self.worst == 0
            print_document({"command": "run --all", "passed": passed, "result": {"items": self.documents}})
        elif self.output == "json":
            print_document(self.documents[0])
        return self.worst

    def _ended(self, execution: Execution, error: DponeError | None) -> None:
        from .story import print_ending

        self.documents.append(execution.document(error))
        if self.output == "text":
            print_ending(execution, error)
        if error is None:
            return
        self.failed.add(execution.process.selector)
        self.worst = max(self.worst, error.exit_code)
        diagnose(error)


def _not_run(process: Process, failed: set[str]) -> DponeError | None:
    missing = sorted(set(process.depends_on) & failed)
    if not missing:
        return None
    failed_with = ", ".join(missing)
    return DponeError(
        ErrorCode.EVIDENCE_REQUIRED,
        f"Not run: it depends on {failed_with}, which did not complete.",
        safe="Nothing of this process was read or changed.",
        next="Repeat the same command once they complete.",
    )


def _stopped(stop: Interrupted) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"Stopped by {stop.signal_name} before the work began.",
        next="Repeat the same command.",
        exit_code=stop.exit_code,
    )
