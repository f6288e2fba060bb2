"""Several replicas at once: one thread each, and an answer or a failure for every one of them."""

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
