"""Work begun before its result is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """One piece of work, begun before its result is asked for, in a daemon thread; it bounds its own waits."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._given: list[T] = []
        self._broken: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="dpone-ahead", daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Wait so long at most; whether there is a result now."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for it. Raises what the work raised."""
        self._thread.join()
        for error in self._broken:
            raise error
        return self._given[0]

    def _run(self) -> None:
        try:
            self._given.append(self._work())
        except BaseException as error:
            self._broken.append(error)
