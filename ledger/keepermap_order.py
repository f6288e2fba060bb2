"""Where the log of a KeeperMap ledger ends, found without reading it all; and one row as it was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from .keepermap_layout import SEALED, log_key
from .recorder import RawRow

_DOUBLINGS: Final = 40
_PROBES: Final = 32


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: an event, or a place in the order (``topic`` empty, or ``sealed``)."""

    key: str
    stream: str
    version: int
    topic: bytes
    state: bytes
    position: int
    insert_id: str

    def text(self) -> str:
        """The topic, also when somebody damaged it."""
        return self.topic.decode("utf-8", "surrogateescape")

    def event(self) -> StoredEvent:
        """As the library's recorders give it."""
        return StoredEvent(UUID(hex=self.stream), self.version, self.text(), self.state)

    def raw(self, position: int) -> RawRow:
        """As verification wants it: the place that it stands at must be the one that it names."""
        state: object = self.state if position == self.position else None
        return RawRow(position, self.stream, self.version, self.text(), state)


def parse_row(row: Sequence[str]) -> Row:
    """A row as the layout's select gives it."""
    key, stream, version, topic, state, position, insert_id = row
    return Row(key, stream, int(version), bytes.fromhex(topic), bytes.fromhex(state), int(position), insert_id)


class Order:
    """The last position. Positions have no gap and are never given back, so what is known can only grow."""

    def __init__(self, rows: Callable[[Sequence[str]], Mapping[str, Row]]) -> None:
        self._read = rows
        self._lock = Lock()
        self._last = 0
        self._asked = False
        self.sealed = False

    def known(self) -> int:
        """The last position as far as this process knows; asks the store once."""
        return self._last if self._asked else self.last()

    def grew(self, position: int, *, sealed: bool = False) -> None:
        """Something stands at ``position``; a seal is no event, and ends the log before it."""
        with self._lock:
            self._last = max(self._last, position - 1 if sealed else position)
            self.sealed = self.sealed or sealed

    def last(self) -> int:
        """Ask the store: doubling steps until nothing is there, then ever closer. Raises LedgerFailed."""
        if self.sealed or (self._asked and not self._read([log_key(self._last + 1)])):
            return self._last
        low, high = self._last, self._last + 2**_DOUBLINGS
        steps = [low + 2**power for power in range(_DOUBLINGS)]
        while steps:
            there, sealed_at = self._look(steps)
            if sealed_at is not None:
                self.grew(sealed_at, sealed=True)
                break
            low = max([low, *there])
            high = min([high, *(step for step in steps if step > low)])
            width = max(1, (high - low) // _PROBES)
            steps = list(range(low + 1, high, width))[: _PROBES + 1] if high - low > 1 else []
        self.grew(low)
        self._asked = True
        return self._last

    def _look(self, steps: Sequence[int]) -> tuple[list[int], int | None]:
        found = self._read([log_key(step) for step in steps])
        there, sealed_at = [], None
        for row in found.values():
            if row.topic == SEALED.encode():
                sealed_at = row.position
            else:
                there.append(row.position)
        return there, sealed_at
