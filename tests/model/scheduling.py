"""Processes that stop before every call to the outside and go on only when the scheduler says so.

Each process runs the real loop in a thread of its own, but only one thread moves at a time, so that an interleaving is
nothing but the order of :meth:`Stepped.advance`. Between two calls a process touches nothing that others see, so the
stop before a call is the stop after the one before it as well; a crash there is a crash right after that effect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

SECONDS = 20.0
END = "end"


class Crashed(BaseException):
    """The process is gone: raised out of its next call, and out of every later one, so that nothing tidies up."""


class Stepped:
    """A process. ``at`` names the call before which it stands; ``error`` is how it ended, None when it returned."""

    def __init__(self, name: str, body: Callable[[Stepped], None]) -> None:
        self.name = name
        self.at = "start"
        self.ended = False
        self.crashed = False
        self.error: BaseException | None = None
        self._turn, self._pause = threading.Lock(), threading.Lock()
        self._turn.acquire()
        self._pause.acquire()
        self._thread = threading.Thread(target=self._run, args=(body,), daemon=True)
        self._thread.start()

    def stop(self, at: str) -> None:
        """Called by the process itself before each call."""
        if self.crashed:
            raise Crashed
        self.at = at
        self._pause.release()
        self._turn.acquire()
        if self.crashed:
            raise Crashed

    def advance(self) -> bool:
        """Make the call before which the process stands and run on to the next one. Returns whether it ended."""
        if self.ended:
            return True
        self._turn.release()
        if not self._pause.acquire(timeout=SECONDS):
            raise TimeoutError(f"{self.name} neither ended nor made another call after {self.at}")
        return self.ended

    def crash(self) -> None:
        """End the process before its next call."""
        self.crashed = True
        self.advance()
        self._thread.join(SECONDS)

    def _run(self, body: Callable[[Stepped], None]) -> None:
        self._turn.acquire()
        try:
            if not self.crashed:
                body(self)
        except BaseException as error:  # whatever it was: the scheduler judges every ending
            self.error = error
        self.at, self.ended = END, True
        self._pause.release()
