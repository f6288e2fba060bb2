"""From a recorded operation to everything that is needed to work on it: the ledger alone, without its manifest.

What a manifest says beside the semantic configuration is not recorded: ``keep_generations`` and ``max_source_bytes``.
An operation that is taken on from here therefore keeps as many predecessors as can be kept; the next ordinary run of
the target trims them.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from ...domain.configuration import Process, SourceType
from ...domain.errors import DponeError, ErrorCode
from ...domain.identity import NO_TASK, OperationKey, Task
from ...domain.limits import KEEP_GENERATIONS_MAX
from ...domain.operation import Operation
from ...domain.outcome import Asked
from ...domain.ports import Progress, SourceReading
from ...domain.steps import Request
from ...domain.tables import Column, Metrics
from .attempt import Invocation, Reporter, Running
from .compose import Composer, Composition
from .execution import Execution
from .lookup import Found
from .provisioning import embedded_folder, read_marker
from .routes import is_embedded
from .settings import Identity, Settings


@dataclass(frozen=True, slots=True)
class UnreachableFile:
    """Stands for a file whose path is relative to a manifest that nobody named: refuses when rows are needed."""

    name: str
    key: OperationKey

    def describe(self) -> tuple[Column, ...]:
        raise self._refused()

    def read(
        self, columns: Sequence[Column], metrics: Metrics, progress: Progress
    ) -> AbstractContextManager[SourceReading]:
        raise self._refused()

    def _refused(self) -> DponeError:
        """Not a failure of the source: the operation stays as it is, and the manifest's command continues it."""
        return DponeError(
            ErrorCode.REQUEST_INVALID,
            f"The source {self.name} must be read, and its path is relative to the manifest.",
            safe="What was appended stays; nothing half-done is ever published.",
            next=shlex.join(["dpone", "run", "MANIFEST", "--dag-id", self.key.dag_id, "--run-id", self.key.run_id]),
        )


def recorded_process(operation: Operation) -> Process:
    """The process that the ledger remembers, ready to be wired."""
    process = operation.process
    path = process.source.path
    resolved = path if path is not None and Path(path).is_absolute() else None
    return replace(
        process,
        source=replace(process.source, resolved_path=resolved),
        sink=replace(process.sink, keep_generations=KEEP_GENERATIONS_MAX),
        selector=process.name,
    )


def recorded_key(operation: Operation) -> OperationKey:
    """The key of an operation that was admitted."""
    if operation.key is None:
        raise ValueError("the operation was never admitted")
    return operation.key


def composed(settings: Settings, found: Found, composer: Composer) -> Composition:
    """Wire a recorded operation. Raises DponeError, also when this home or connection leads to another platform."""
    process, key = recorded_process(found.operation), recorded_key(found.operation)
    return checked(composer, key)(settings, process)


def checked(composer: Composer, key: OperationKey) -> Composer:
    """The composer, refusing to be led to another platform than the one that holds the recorded target."""

    def compose(settings: Settings, process: Process) -> Composition:
        if is_embedded(process):
            _check_home(settings, key.platform_id)
        composition = composer(settings, process)
        if composition.platform_id != key.platform_id:
            composition.close()
            raise _elsewhere("This connection leads to another platform than the one that holds the target.")
        if _is_relative(process):
            unreachable = UnreachableFile(Path(process.source.path or "").name, key)
            composition.ports = replace(composition.ports, source=unreachable)
        return composition

    return compose


def running(composition: Composition, found: Found, settings: Settings, reporter: Reporter, command: str) -> Running:
    """This process's view of the operation, rebuilt. ``command`` is what a message tells to type again."""
    operation = found.operation
    if operation.configuration is None:
        raise ValueError("the operation was never admitted")
    request = Request(recorded_key(operation), operation.configuration, operation.configuration_digest)
    invocation = Invocation(settings.by, KEEP_GENERATIONS_MAX, command, revision=settings.revision)
    view = Running(composition.ports, request, invocation, reporter)
    view.rebuild()
    return view


@dataclass(slots=True)
class Resumption(Execution):
    """An operation that no manifest describes, taken on like the command that began it. ``words`` are that command's,
    after ``dpone``."""

    words: tuple[str, ...] = ()

    @property
    def same_command(self) -> str:
        """The command that continues this operation."""
        return shlex.join(["dpone", *self.words, *self._ledger_words()])

    def _asked(self) -> Asked:
        identity = self.identity
        return Asked(process=self.process.name, dag_id=identity.dag_id, run_id=identity.run_id)


def resumption(
    found: Found, settings: Settings, composer: Composer, reporter: Reporter, words: tuple[str, ...] = ()
) -> Resumption:
    """What continues a recorded operation. ``words``: as for :class:`Resumption`; default ``ops resume``."""
    key, task = recorded_key(found.operation), found.task
    return Resumption(
        manifest="",
        manifest_sha256=None,
        process=recorded_process(found.operation),
        identity=Identity(
            key.dag_id,
            key.run_id,
            task=Task(task.task_id, task.map_index) if task is not None else NO_TASK,
        ),
        settings=settings,
        composer=checked(composer, key),
        reporter=reporter,
        words=words or ("ops", "resume", str(found.stream)),
    )


def _is_relative(process: Process) -> bool:
    """A file source whose place only the manifest's own place tells."""
    source = process.source
    if source.resolved_path is not None or source.path is None:
        return False
    return not source.type.is_connected or source.type is SourceType.SQLITE


def _check_home(settings: Settings, platform_id: str) -> None:
    marker = read_marker(embedded_folder(settings.home))
    if marker is None or marker.platform_id != platform_id:
        raise _elsewhere("The target is in the embedded engine of another home than this one.")


def _elsewhere(what: str) -> DponeError:
    return DponeError(
        ErrorCode.REQUEST_INVALID,
        what,
        safe="Nothing was read or changed.",
        next="Set DPONE_HOME, or the connection's variables, as they were for the run.",
    )
