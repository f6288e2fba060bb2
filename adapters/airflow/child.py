"""The program of a load's process: ``python -m dpone.adapters.airflow.child CHANNEL PARENT``.

It dies with the task that started it, takes its request and its connections from the channel, tells its steps on
stderr, and answers with the document. It knows nothing of Airflow.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import engine_memory, unneeded
from ..cli import early
from ..cli.interrupts import interruptible
from ..connections.connection import Connection
from ..program.running import perform
from ..reader.child import die_with
from . import frames
from .request import Handed, bound
from .siblings import refusing_siblings

if TYPE_CHECKING:
    from ...domain.steps import Step
    from ..program.outcome import Outcome
    from ..runtime.compose import Composer


def main(words: Sequence[str], composer: Composer | None = None) -> None:
    """Run one request and leave the process with the outcome's exit code. ``composer`` replaces the wiring."""
    channel, parent = (int(word) for word in words)
    die_with(parent)
    early.note_signals()
    unneeded.keep_out()
    engine_memory.give_back_soon()
    with socket.socket(fileno=channel) as connected:
        try:
            code = _answer(connected, composer)
        except Exception as error:  # without a trace, which could quote what came through the channel
            print(f"The load's process could not answer: {type(error).__name__}.", file=sys.stderr)
            code = 1
    sys.stderr.flush()
    os._exit(code)  # a query may still run in the engine's thread, and nothing can interrupt it


def _answer(channel: socket.socket, composer: Composer | None) -> int:
    handed = Handed.of(frames.receive(channel))
    os.environ.update(handed.environ)  # libraries read theirs; it does not show in this process's own
    outcome = _performed(handed, ChannelProvider(channel), composer)
    frames.send(channel, {"document": dict(outcome.document), "exit_code": outcome.exit_code})
    return outcome.exit_code


def _performed(handed: Handed, provider: ChannelProvider, composer: Composer | None) -> Outcome:
    from ..runtime.compose import compose

    composed = refusing_siblings(handed.request, composer or compose)
    with interruptible():
        return perform(handed.request, environ=handed.environ, provider=provider, composer=composed, reporter=TaskLog())


@dataclass(frozen=True, slots=True)
class ChannelProvider:
    """Asks the task for a connection, when it is needed and not before."""

    channel: socket.socket

    def connection(self, reference: str) -> Connection | None:
        """Raises DponeError as the task's providers do."""
        frames.send(self.channel, {"want": reference})
        return bound(frames.receive(self.channel))


class TaskLog:
    """Tells each step on stderr, from where the task puts it into its log."""

    def step(self, step: Step) -> None:
        print(step.sentence, file=sys.stderr, flush=True)

    def rows(self, rows: int, source_bytes: int) -> None:
        return None

    def stop(self) -> None:
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
