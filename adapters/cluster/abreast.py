"""Several replicas at once: one thread each, and an answer or a failure for every one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ...domain.errors import EngineFailed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """What each replica answered, or how it failed; together they hold every replica that was asked."""

    given: dict[str, T] = field(default_factory=dict)
    failed: dict[str, EngineFailed] = field(default_factory=dict)

    def all(self) -> dict[str, T]:
        """Every answer. Raises the first failure, by the replica's name."""
        for replica in sorted(self.failed):
            raise self.failed[replica]
        return self.given


def abreast(work: Mapping[str, Callable[[], T]]) -> Answers[T]:
    """Run all of it at the same time; every piece bounds its own waits.

    The threads are daemons: a signal that raises in the caller's wait leaves them behind and the process may end.
    What is no EngineFailed is raised here, once all have ended.
    """
    answers: Answers[T] = Answers()
    broken: list[BaseException] = []

    def run(replica: str, piece: Callable[[], T]) -> None:
        try:
            answers.given[replica] = piece()
        except EngineFailed as error:
            answers.failed[replica] = error
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=run, args=item, name=f"dpone-{item[0]}", daemon=True) for item in work.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in broken:
        raise error
    return answers
