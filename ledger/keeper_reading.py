"""Reading a ledger in Keeper: by stream through its index, and in ledger order through the log's own names.

Every read also asks for the head. Its name belongs to one ledger only, so an empty answer is believed only from the
ledger that was opened, and not from a root that somebody removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Generic, TypeVar

from ..domain.errors import ErrorCode, LedgerFailed
from .keeper_faults import absent, damaged, replaced, too_new
from .keeper_layout import (
    STREAM_BUCKETS,
    Head,
    IdentityRecord,
    Layout,
    Malformed,
    Place,
    Row,
    StreamIndex,
    bucket_name,
    parse_entry,
    parse_format,
    parse_head,
    parse_identity,
    parse_index,
    parse_page,
)
from .keeper_session import Node, Session
from .recorder import STORE_FORMAT, RawRow

_ENTRIES_AT_ONCE: Final = 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """What a node says, and the node's version."""

    value: T
    version: int


@dataclass(frozen=True, slots=True)
class View:
    """The ledger's end, and the indexes of some streams, None for a stream that has no events."""

    head: Versioned[Head]
    identity: Versioned[IdentityRecord]
    streams: dict[str, Versioned[StreamIndex] | None]


class Reader:
    """Reads of the ledger at ``layout``; ``head_path`` is the opened ledger's own head."""

    def __init__(self, session: Session, layout: Layout, head: str) -> None:
        self.session = session
        self.layout = layout
        self.head_path = layout.head(head)

    @property
    def name(self) -> str:
        return self.session.name

    def view(self, streams: Sequence[str]) -> View:
        """All that an append must know. Raises LedgerFailed, also when another ledger lies here now."""
        paths = (self.head_path, self.layout.identity, *map(self.layout.stream, streams))
        head, identity, *found = self.session.read(paths)
        if head is None or identity is None:
            raise replaced(self.name)
        indexes = {stream: self._index(node) if node else None for stream, node in zip(streams, found, strict=True)}
        return View(self._head(head), identity_of(identity, self.name), indexes)

    def head(self) -> Head:
        """The end of the log."""
        return self.view(()).head.value

    def events(self, stream: str, gt: int | None, lte: int | None) -> list[Row]:
        """A stream's events with versions in (gt, lte], in order. Raises LedgerFailed when one is missing."""
        index = self.view((stream,)).streams[stream]
        if index is None:
            return []
        low = 0 if gt is None else gt + 1
        high = index.value.version if lte is None else min(lte, index.value.version)
        spans = [span for span in self._spans(stream, index.value, low) if span[1] <= high and span[2] >= low]
        rows: list[Row] = []
        entries = self._entries([entry for entry, _, _ in spans])
        for (entry, first, last), found in zip(spans, entries, strict=True):
            own = [row for row in found or () if row.stream == stream]
            if [row.version for row in own] != list(range(first, last + 1)):
                raise self._missing(stream, first, entry)
            rows += [row for row in own if low <= row.version <= high]
        return rows

    def places(self, stream: str, index: StreamIndex, low: int = 0) -> list[Place]:
        """Where the events of a stream from version ``low`` on lie, in order of version."""
        wanted = [page for page, after in pairwise((*index.pages, index.places[0].version)) if after > low]
        pages = self.session.read([self.layout.page(stream, version) for version in wanted])
        found: list[Place] = []
        for node in pages:
            found += self._parsed(parse_page, node, "a page of a stream").places
        return [*found, *index.places]

    def rows(self, after: int, limit: int) -> list[RawRow]:
        """At most ``limit`` events with positions above ``after``; what cannot be parsed has no stream."""
        head = self.head()
        # Only what lies below the head as read before the names: between two listings others append to both buckets.
        if head.position <= after or limit <= 0:
            return []
        rows: list[RawRow] = []
        for entries in self._names(after + 1, head.position):
            for position, found in zip(entries, self._entries(entries), strict=True):
                rows += [row for row in _raw(position, found) if row.position > after]
            if len(rows) >= limit:
                break
        return rows[:limit]

    def entry_positions(self, head: Head) -> Iterator[int]:
        """The positions of all entries up to the head, in order, from the nodes' names."""
        for entries in self._names(1, head.position):
            yield from entries

    def last_entry(self) -> int:
        """The position of the last entry by the nodes' names, whatever the head says; 0 for an empty log."""
        (listed,) = self.session.children((self.layout.log,))
        for bucket in reversed(listed or ()):
            (names,) = self.session.children((f"{self.layout.log}/{bucket}",))
            if names:
                return max(int(name) for name in names if name.isdecimal())
        return 0

    def indexes(self) -> dict[str, StreamIndex]:
        """Every stream's index."""
        found = self.session.children([self.layout.stream_bucket(name) for name in STREAM_BUCKETS])
        if None in found:
            raise damaged(self.name, "a bucket of its streams is missing")
        names = [name for names in found for name in names or ()]
        nodes = self.session.read([self.layout.stream(name) for name in names])
        return {name: self._index(node).value for name, node in zip(names, nodes, strict=True) if node is not None}

    # -------------------------------------------------------------------------------------------------- the log

    def _names(self, start: int, end: int) -> Iterator[list[int]]:
        """Positions of entries, a few at a time: from the one that holds ``start`` to the last at or below ``end``."""
        (listed,) = self.session.children((self.layout.log,))
        if listed is None:
            raise damaged(self.name, "its log is missing")
        buckets = [name for name in listed if name <= bucket_name(end)]
        # An entry longer than a bucket leaves none behind it, so the one that holds ``start`` may begin far before.
        before = [name for name in buckets if name <= bucket_name(start)]
        at = len(before) - 1
        while at > 0 and self._bucket(buckets[at], end)[:1] > [start]:
            at -= 1
        for number, bucket in enumerate(buckets[max(at, 0) :]):
            entries = self._bucket(bucket, end)
            if number == 0:
                entries = entries[max(bisect_right(entries, start) - 1, 0) :]
            for chunk in range(0, len(entries), _ENTRIES_AT_ONCE):
                yield entries[chunk : chunk + _ENTRIES_AT_ONCE]

    def _bucket(self, name: str, end: int) -> list[int]:
        (names,) = self.session.children((f"{self.layout.log}/{name}",))
        return sorted(int(entry) for entry in names or () if entry.isdecimal() and int(entry) <= end)

    def _entries(self, positions: Sequence[int]) -> list[list[Row] | None]:
        nodes = self.session.read([self.layout.entry(position) for position in positions])
        return [None if node is None else _rows(node.data) for node in nodes]

    # ---------------------------------------------------------------------------------------------- the streams

    def _spans(self, stream: str, index: StreamIndex, low: int) -> Iterator[tuple[int, int, int]]:
        """Entry, first and last version."""
        places = self.places(stream, index, low)
        for place, following in pairwise(places):
            yield place.entry, place.version, following.version - 1
        yield places[-1].entry, places[-1].version, index.version

    def _index(self, node: Node) -> Versioned[StreamIndex]:
        return Versioned(self._parsed(parse_index, node, "the node of a stream"), node.version)

    def _head(self, node: Node) -> Versioned[Head]:
        return Versioned(self._parsed(parse_head, node, "its head"), node.version)

    def _parsed(self, parse: Callable[[bytes], T], node: Node | None, what: str) -> T:
        if node is None:
            raise damaged(self.name, f"{what} is missing")
        try:
            return parse(node.data)
        except Malformed as error:
            raise damaged(self.name, f"{what} cannot be read") from error

    def _missing(self, stream: str, version: int, entry: int) -> LedgerFailed:
        return LedgerFailed(
            ErrorCode.EVIDENCE_INVALID,
            f"Event {version} of stream {stream} in the ledger {self.name} is not where it was once appended, "
            f"in the entry at position {entry}.",
            safe="Nothing was changed or appended. A ledger that cannot be trusted is never continued.",
            next="dpone audit verify",
        )


def identity_of(node: Node | None, name: str) -> Versioned[IdentityRecord]:
    """What an identity node says. Raises LedgerFailed: absent, too new, damaged."""
    if node is None:
        raise absent(name)
    try:
        found = parse_format(node.data)
        if found > STORE_FORMAT:
            raise too_new(name, found)
        return Versioned(parse_identity(node.data), node.version)
    except Malformed as error:
        raise damaged(name, "its identity record cannot be read") from error


def _rows(data: bytes) -> list[Row] | None:
    try:
        return parse_entry(data)
    except Malformed:
        return None


def _raw(position: int, found: list[Row] | None) -> Iterator[RawRow]:
    if found is None:
        yield RawRow(position, None, None, None, None)
        return
    for number, row in enumerate(found, start=position):
        yield RawRow(number, row.stream, row.version, row.topic, row.state)
