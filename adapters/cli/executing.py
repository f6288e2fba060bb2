"""One operation worked on to its end, with the document and the story that ``dpone run`` ends with."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...domain.errors import DponeError, ErrorCode
from ...domain.outcome import Asked, Done, document
from .output import diagnose, print_document

if TYPE_CHECKING:
    from ..runtime.execution import Execution, Interrupted


def execute(prepare: Callable[[], Execution], output: str) -> int:
    """Prepare and run. Prints the one document, or the story; returns the exit code. Use in the main thread."""
    from ..runtime.execution import Interrupted
    from .interrupts import interruptible

    execution: Execution | None = None
    error: DponeError | None
    try:
        with interruptible():
            execution = prepare()
            execution.begin()
            error = execution.run()
            execution.reporter.stop()
            execution.close()
    except DponeError as refused:
        error = refused
    except Interrupted as stop:
        error = _interrupted(execution, stop)
        _end(execution, error, output)
        sys.stdout.flush()
        os._exit(stop.exit_code)  # a query may still run in the engine's thread and nothing can interrupt it
    return _end(execution, error, output)


def _interrupted(execution: Execution | None, stop: Interrupted) -> DponeError:
    if execution is None:
        return DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            f"Stopped by {stop.signal_name} before the work began.",
            next="Repeat the same command.",
            exit_code=stop.exit_code,
        )
    execution.reporter.stop()
    execution.abandon()
    return execution.interrupted(stop)


def _end(execution: Execution | None, error: DponeError | None, output: str) -> int:
    from .story import print_ending

    if output == "json":
        shown = document(Asked(), Done(), error) if execution is None else execution.document(error)
        print_document(shown)
    elif execution is not None:
        print_ending(execution, error)
    if error is None:
        return 0
    diagnose(error)
    return error.exit_code
