"""What a person reads: an operation's timeline from the ledger, plain on a pipe, coloured on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...domain.errors import DponeError
from ...domain.explain import Line, holds_now, timeline
from ...domain.identity import operation_id
from ...domain.operation import Operation
from ...domain.outcome import warnings
from .output import printable, write

if TYPE_CHECKING:
    from ...domain.events import Event
    from ..runtime.execution import Execution

_MARKS = {"done": "✔", "broken": "✖", "end": "●"}
_COLOURS = {"done": "green", "broken": "red", "end": "cyan"}
_TITLE_WIDTH = 18


def story(operation: Operation, events: Sequence[Event]) -> list[tuple[str, str]]:
    """The lines of the story with a colour's name each (empty: none)."""
    key = operation.key
    if key is None:
        return []
    heading = f"{key.process} → {key.database}.{key.table}      operation {str(operation_id(key))[:8]}"
    lines = [(f"{heading}      dag {key.dag_id} · run {key.run_id} · attempt {operation.attempt}", "bold")]
    for index, line in enumerate(timeline(events)):
        lines.append((_line(line, first=index == 0), _COLOURS[line.mark]))
    return lines


def print_story(operation: Operation, events: Sequence[Event], closing: Sequence[str] = ()) -> None:
    """Print the story and the closing sentences."""
    lines = story(operation, events)
    if sys.stdout.isatty():
        _print_coloured(lines)
    else:
        for text, _ in lines:
            write(text)
    for sentence in closing:
        write(sentence)


def print_ending(execution: Execution, error: DponeError | None) -> None:
    """The text that a run ends with: the story, what holds now, and warnings; nothing when nothing was begun."""
    running = execution.running
    if running is None or running.attempt.fence is None:
        return  # a refusal: the earlier history would only hide it
    operation = running.operation
    if error is None and running.counters.extracted_rows == 0:
        write(_opening(replayed=operation.validated_attempt == running.attempt.fence))
    last = [holds_now(operation)] if error is None else []
    last += [f"Warning: {warning}" for warning in warnings(operation)]
    if execution.identity.fresh:
        last += [
            "This run had no id: repeating the command as typed is a new run, not a recovery. To name this one:",
            f"  {execution.same_command}",
        ]
    print_story(operation, execution.history, last)


def _opening(*, replayed: bool) -> str:
    """The words a result begins with when nothing was read."""
    if replayed:
        return "Nothing was read, inserted or published: this run completed before, and its generation is still live."
    return "Nothing was read again: an earlier attempt had staged the rows, and this one continued from its events."


def _line(line: Line, *, first: bool) -> str:
    if not line.at:
        when = ""
    elif first:
        when = line.at[11:19]
    else:
        when = _elapsed(line.seconds)
    return f"  {_MARKS[line.mark]} {line.title:<{_TITLE_WIDTH}} {when:>10}   {line.text}".rstrip()


def _elapsed(seconds: float) -> str:
    if seconds < 120:
        return f"+{seconds:.1f} s"
    if seconds < 7200:
        return f"+{seconds / 60:.0f} min"
    return f"+{seconds / 3600:.1f} h"


def _print_coloured(lines: Sequence[tuple[str, str]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for text, style in lines:
        shown = Text(printable(text))
        if style == "bold":
            shown.stylize("bold")
        else:
            shown.stylize(style, 2, 3)
        console.print(shown)
