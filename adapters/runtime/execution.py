"""One ``dpone run`` of one process: from what was typed to the document, whatever happens on the way."""

from __future__ import annotations

import re
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...domain.configuration import Process, semantic, semantic_digest
from ...domain.errors import DponeError, ErrorCode
from ...domain.explain import holds_now
from ...domain.identity import OperationKey, identity_problem
from ...domain.operation import State
from ...domain.outcome import Asked, Done, document
from ...domain.steps import Request
from .attempt import Invocation, Reporter, Running
from .compose import Composer, Composition
from .defects import internal
from .ledger_words import ledger_words
from .loop import run
from .settings import Identity, Settings

if TYPE_CHECKING:
    from ...domain.events import Event

_REPEAT = re.compile(r"\b[Rr]epeat the (?:same )?command\b")


class Interrupted(BaseException):
    """A signal asked this process to stop. ``exit_code`` is 128 plus the signal's number."""

    def __init__(self, signal_name: str, number: int) -> None:
        super().__init__(signal_name)
        self.signal_name = signal_name
        self.exit_code = 128 + number


@dataclass(slots=True)
class Execution:
    """What is known so far; :meth:`document` may be asked at any moment, also from an interruption."""

    manifest: str
    manifest_sha256: str | None
    process: Process
    identity: Identity
    settings: Settings
    composer: Composer
    reporter: Reporter
    began: float = field(default_factory=time.monotonic)
    composition: Composition | None = None
    running: Running | None = None
    history: tuple[Event, ...] = ()

    def begin(self) -> None:
        """Start the clock of this run's duration."""
        self.began = time.monotonic()

    def run(self) -> DponeError | None:
        """Work on the operation to its end. Returns the error that ended it, or None for success.

        Raises Interrupted when a signal handler does. Never raises anything else.
        """
        try:
            self._run()
        except DponeError as error:
            return self._addressed(error)
        except Exception as error:  # a defect must still end in one document, without a traceback or a value in it
            return self._addressed(internal(error))
        return None

    def interrupted(self, stop: Interrupted) -> DponeError:
        """The ending after a signal."""
        return self._addressed(
            DponeError(
                ErrorCode.EVIDENCE_INCOMPLETE,
                f"Stopped by {stop.signal_name}.",
                safe=self._safe_now(),
                next="Repeat the same command.",
                exit_code=stop.exit_code,
            )
        )

    def _safe_now(self) -> str:
        if self.running is None or self.running.operation.state is State.NEW:
            return "Nothing was read or changed."
        return f"{holds_now(self.running.operation)} What was recorded stays."

    def document(self, error: DponeError | None) -> dict[str, Any]:
        """The document for this ending."""
        return document(self._asked(), self._done(), error)

    def close(self) -> None:
        """Keep the history for the story; reap the reader, release the folder, close the ledger. Never raises."""
        self._keep_history()
        if self.composition is not None:
            with suppress(DponeError, OSError):
                self.composition.close()

    def abandon(self) -> None:
        """After an interruption: reap the reader. The folder's lock goes with the process, a query may hold it."""
        self._keep_history()
        if self.composition is not None:
            with suppress(DponeError, OSError):
                self.composition.ports.reader.close()

    def _keep_history(self) -> None:
        if self.composition is None or self.running is None:
            return
        with suppress(DponeError):
            stream = self.running.operation_stream
            self.history = tuple(item.event for item in self.composition.ledger.read(stream))

    @property
    def same_command(self) -> str:
        """The command that continues this operation, every part of the key spelled out."""
        words = ["dpone", "run", self.manifest, "--selector", self.process.selector]
        words += ["--dag-id", self.identity.dag_id, "--run-id", self.identity.run_id]
        return shlex.join([*words, *self._ledger_words()])

    def _run(self) -> None:
        problem = identity_problem("process name", self.process.name)
        if problem is not None:
            raise DponeError(ErrorCode.REQUEST_INVALID, problem, next="Rename the process.")
        form = semantic(self.process)
        self.composition = self.composer(self.settings, self.process)
        key = OperationKey(
            self.identity.dag_id,
            self.identity.run_id,
            self.process.name,
            self.composition.platform_id,
            self.process.sink.database,
            self.process.sink.table,
        )
        self.running = Running(
            ports=self.composition.ports,
            request=Request(key, form, semantic_digest(form)),
            invocation=self._invocation(),
            report=self.reporter,
        )
        run(self.running)

    def _invocation(self) -> Invocation:
        return Invocation(
            by=self.settings.by,
            keep_generations=self.process.sink.keep_generations,
            same_command=self.same_command,
            manifest_sha256=self.manifest_sha256,
            revision=self.settings.revision,
            task=self.identity.task,
        )

    def _asked(self) -> Asked:
        return Asked(
            manifest=self.manifest,
            process=self.process.name,
            selector=self.process.selector,
            dag_id=self.identity.dag_id,
            run_id=self.identity.run_id,
        )

    def _done(self) -> Done:
        seconds = time.monotonic() - self.began
        running = self.running
        if running is None:
            return Done(duration_seconds=seconds)
        counters = running.counters
        return Done(
            operation_id=running.request.operation,
            operation=running.operation,
            attempt=running.attempt.fence,
            extracted_rows=counters.extracted_rows,
            inserted_rows=counters.inserted_rows,
            final_rows=counters.final_rows,
            duration_seconds=seconds,
        )

    def _addressed(self, error: DponeError) -> DponeError:
        """Spell out the command to type next."""
        if error.next is None or error.next in ("Repeat the same command.", "Repeat the command."):
            error.next = self.same_command
        elif _REPEAT.search(error.next):
            error.next = f"{error.next.rstrip('.')}: {self.same_command}"
        elif error.next.startswith("dpone "):
            error.next = " ".join([error.next, *(shlex.quote(word) for word in self._ledger_words())])
        return error

    def _ledger_words(self) -> list[str]:
        return ledger_words(self.settings.ledger_option, self.settings.environ)
