"""One thread that makes every call into the engine, so that a signal never waits for a query.

The engine holds back signal handlers while a query runs in the main thread, and it has no way to interrupt a query. So
the main thread only waits here, in a lock that a signal ends at once. When the handler raises, the query goes on in
its daemon thread and the caller is free to print its document and leave with ``os._exit``.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...domain.errors import EngineFailed, ErrorCode

T = TypeVar("T")


@dataclass(slots=True)
class Job(Generic[T]):
    """One call and, once ``done`` is set, what came of it."""

    work: Callable[[], T]
    done: threading.Event = field(default_factory=threading.Event)
    value: T | None = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.work()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


class EngineThread:
    """Runs jobs one after another. Daemon: it never keeps the process alive."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job[Any]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: Job[Any] | None = None

    @property
    def busy(self) -> bool:
        """An earlier call was given up by its waiter and is still running."""
        return self._last is not None and not self._last.done.is_set()

    def start(self, work: Callable[[], T]) -> Job[T]:
        """Begin a call without waiting for it. Raises EngineFailed while an earlier one still runs."""
        if self.busy:
            raise EngineFailed(
                ErrorCode.INTERNAL,
                "An interrupted statement is still running in the engine.",
                safe="Its outcome is not known; the next attempt observes it.",
                next="Repeat the same command.",
            )
        return self._submit(work)

    def call(self, work: Callable[[], T]) -> T:
        """Run ``work`` in the engine's thread and wait. A signal handler that raises ends the wait, not the work."""
        job = self.start(work)
        job.done.wait()
        return job.result()

    def ahead(self, work: Callable[[], object]) -> None:
        """Let ``work`` run before the next call; what comes of it is not looked at."""
        if not self.busy:
            self._submit(work)
            self._last = None  # the next call queues behind it instead of being refused

    def _submit(self, work: Callable[[], T]) -> Job[T]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="dpone-engine", daemon=True)
            self._thread.start()
        job = Job(work)
        self._last = job
        self._jobs.put(job)
        return job

    def _serve(self) -> None:
        while True:
            self._jobs.get().run()
