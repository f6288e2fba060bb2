"""Work ahead in a thread: decompressing and parsing release the interpreter's lock, so stages overlap."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ...domain.limits import STOP_SECONDS

T = TypeVar("T")
_POLL_SECONDS = 0.05


class Prefetched(Generic[T]):
    """Iterates ``items`` in a thread, at most ``depth`` items ahead. Leaving the context ends the thread.

    An error of the thread is raised where the consumer would have got the next item.
    """

    def __init__(self, items: Iterator[T], depth: int) -> None:
        self._items = items
        self._queue: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dpone-source", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(STOP_SECONDS)

    def __iter__(self) -> Iterator[T]:
        while True:
            more, item = self._queue.get()
            if more:
                yield item
            elif item is None:
                return
            else:
                raise item

    def _run(self) -> None:
        ending: BaseException | None = None
        try:
            for item in self._items:
                if not self._put(True, item):
                    break
        except BaseException as error:
            ending = error
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
            self._put(False, ending)

    def _put(self, more: bool, item: Any) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put((more, item), timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False
