"""Several replicas at once: one thread each, and an answer or a failure for every one of them; or work begun early."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...domain.errors import EngineFailed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """What each replica answered, or how it failed, in the order in which they were named."""

    given: dict[str, T]
    failed: dict[str, EngineFailed]

    def all(self) -> dict[str, T]:
        """Every answer. Raises the first failure."""
        for error in self.failed.values():
            raise error
        return self.given


def abreast(work: Mapping[str, Callable[[], T]]) -> Answers[T]:
    """Run all of it at the same time; every piece bounds its own waits.

    The threads are daemons: a signal that raises in the caller's wait leaves them behind and the process may end.
    What is no EngineFailed is raised here, once all have ended.
    """
    given: dict[str, T] = {}
    failed: dict[str, EngineFailed] = {}
    broken: list[BaseException] = []

    def run(replica: str, piece: Callable[[], T]) -> None:
        try:
            given[replica] = piece()
        except EngineFailed as error:
            failed[replica] = error
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=run, args=item, name=f"dpone-{item[0]}", daemon=True) for item in work.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in broken:
        raise error
    return Answers(
        {replica: given[replica] for replica in work if replica in given},
        {replica: failed[replica] for replica in work if replica in failed},
    )


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
