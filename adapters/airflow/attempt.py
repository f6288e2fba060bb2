"""One try of a task, without Airflow: start the load's process, bind its connections, read how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...domain.errors import DponeError, ErrorCode
from ...domain.outcome import Asked, Done, document
from ..program.outcome import Outcome
from ..program.running import Request
from .frames import Frame, FrameInvalid
from .process import COMMAND, Ended, LoadProcess, Say
from .request import Handed, connection_frame, refusal_frame, settings_of
from .scrubbing import Scrubber

if TYPE_CHECKING:
    from ..connections.connection import Connection

_TASK = "AIRFLOW_CTX_DAG_ID"


@dataclass(slots=True)
class Try:
    """``environ`` is the worker's; ``say`` takes a line for the task's log. Nothing that leaves here holds a secret."""

    request: Request
    environ: Mapping[str, str]
    say: Say
    command: Sequence[str] = COMMAND
    scrubber: Scrubber = field(default_factory=Scrubber)
    process: LoadProcess = field(init=False)

    def __post_init__(self) -> None:
        self.process = LoadProcess(self._say, self.command)

    def run(self) -> Outcome:
        """The outcome, also of a process that could not be started or ended without a word."""
        handed = Handed(self.request, settings_of(self.environ))
        try:
            ended = self.process.run(handed.frame(), self._answer)
        except (FrameInvalid, OSError):
            return self._failed("The load's process could not be started, or it did not keep to its channel.")
        return self._read(ended)

    def end(self) -> bool:
        """End the process, from a signal handler too. True when it is gone."""
        return self.process.end()

    def _say(self, line: str) -> None:
        self.say(self.scrubber.text(line))

    def _answer(self, asked: Frame) -> Frame:
        try:
            connection = self._bound(str(asked["want"]))
        except DponeError as error:
            return refusal_frame(error)
        self.scrubber.learn(connection)
        return connection_frame(connection)

    def _bound(self, reference: str) -> Connection:
        from ..connections.resolving import resolve

        inside_a_task = {_TASK: self.request.dag_id or "", **self.environ}
        return resolve(reference, inside_a_task)

    def _read(self, ended: Ended) -> Outcome:
        if ended.said is None:
            how = f"by signal {-ended.status}" if ended.status < 0 else f"with code {ended.status}"
            return self._failed(f"The load's process ended {how}, without a word.")
        try:
            return Outcome.of(self.scrubber.data(ended.said["document"]), int(ended.said["exit_code"]))
        except (KeyError, TypeError, ValueError):
            return self._failed("The load's process ended with an answer that cannot be understood.")

    def _failed(self, what: str) -> Outcome:
        error = DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            what,
            safe="What was appended stays; nothing half-done is ever published.",
            next="Let the task try again, or clear it: the next try continues the operation.",
            exit_code=1,
        )
        request = self.request
        asked = Asked(str(request.manifest), None, request.selector, request.dag_id, request.run_id)
        return Outcome.of(document(asked, Done(), error), error.exit_code)
