"""One read of a source: batches out, then the proof that it did not change, then what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...domain.errors import SourceFailed
from ...domain.limits import BATCH_ROWS
from ...domain.ports import Progress
from ...domain.tables import Observation
from .prefetch import Prefetched

if TYPE_CHECKING:
    from .observing import Observer

_BATCHES_AHEAD = 2

Produced = Iterator[tuple[Any, int]]
"""Converted batches of any size, each with the source bytes read so far."""


class Reading:
    """A :class:`~dpone.domain.ports.SourceReading`. Built by :func:`streaming`."""

    def __init__(
        self,
        batches: Prefetched[tuple[Any, int]],
        observer: Observer,
        verify: Callable[[], None],
        fingerprint: Mapping[str, str | int],
        progress: Progress,
    ) -> None:
        self._batches = batches
        self._observer = observer
        self._verify = verify
        self._fingerprint = fingerprint
        self._progress = progress
        self._observation: Observation | None = None

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._each()
        except SourceFailed:
            self._verify()  # a source that changed looks damaged: say what really happened
            raise
        self._verify()
        self._observation = self._observer.result()

    def _each(self) -> Iterator[Any]:
        rows = 0
        for batch, read_bytes in self._batches:
            yield batch
            rows += batch.num_rows
            self._progress(rows, read_bytes)

    @property
    def observation(self) -> Observation:
        """What was counted. Only after the last batch."""
        if self._observation is None:
            raise RuntimeError("the source was not read to its end")
        return self._observation

    @property
    def fingerprint(self) -> Mapping[str, str | int]:
        """What the source was. Only after the last batch."""
        if self._observation is None:
            raise RuntimeError("the source was not read to its end")
        return self._fingerprint


@contextmanager
def streaming(
    produced: Produced,
    observer: Observer,
    verify: Callable[[], None],
    fingerprint: Mapping[str, str | int],
    progress: Progress,
) -> Iterator[Reading]:
    """Convert and count ahead in a thread; both ends leave together."""
    with Prefetched(_counted(produced, observer), _BATCHES_AHEAD) as batches:
        yield Reading(batches, observer, verify, fingerprint, progress)


def _counted(produced: Produced, observer: Observer) -> Produced:
    for batch, read_bytes in produced:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch if batch.num_rows <= BATCH_ROWS else batch.slice(start, BATCH_ROWS)
            observer.add(part)
            yield part, read_bytes
