"""Where a ledger lies in Keeper and how its nodes are written: format 1.

Below the root::

    identity                         which ledger this is, its epoch, its format, whether it is sealed
    head-<random>                    the position of the last event; its version counts appends
    log/<7 digits>/<10 digits>       one node an append, named by its first event's position; 1,000 positions a bucket
    streams/<2 digits>/<stream>      in which entries of the log a stream's events lie
    streams/…/<stream>/<10 digits>   a full page of that, named by the version at which it begins
    archive                          reserved: a later format may move the entries of streams that ended below it

An entry's events are grouped by stream, so that a later format can take one stream out and leave the others; it will
raise the format in the identity record, which this version refuses to open.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from .recorder import LedgerIdentity

if TYPE_CHECKING:
    from eventsourcing.persistence import StoredEvent

ENTRY_BYTES_MAX: Final = 900 * 1024
"""One append, before it is deflated: what fits must not depend on how well it compresses."""

REQUEST_BYTES_MAX: Final = 1_000_000
"""Everything that one append sends. Keeper ends the connection at 1,048,576 bytes unless it is configured otherwise."""

BUCKET_POSITIONS: Final = 1_000
PAGE_PLACES: Final = 64
STREAM_BUCKETS: Final = tuple(f"{number:02x}" for number in range(256))

_DEFLATE_FROM_BYTES: Final = 512
_PLAIN, _DEFLATED = b"P", b"Z"


class Malformed(ValueError):
    """A node does not hold what this format writes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below a root, which has no slash at its end."""

    root: str

    @property
    def identity(self) -> str:
        return f"{self.root}/identity"

    @property
    def log(self) -> str:
        return f"{self.root}/log"

    @property
    def streams(self) -> str:
        return f"{self.root}/streams"

    def head(self, name: str) -> str:
        return f"{self.root}/{name}"

    def bucket(self, position: int) -> str:
        return f"{self.root}/log/{bucket_name(position)}"

    def entry(self, position: int) -> str:
        return f"{self.bucket(position)}/{position:010d}"

    def stream_bucket(self, name: str) -> str:
        return f"{self.root}/streams/{name}"

    def stream(self, stream: str) -> str:
        return f"{self.root}/streams/{stream[:2]}/{stream}"

    def page(self, stream: str, version: int) -> str:
        return f"{self.stream(stream)}/{version:010d}"


def bucket_name(position: int) -> str:
    """The name of the bucket of the log in which the entry at ``position`` lies."""
    return f"{position // BUCKET_POSITIONS:07d}"


# --------------------------------------------------------------------------------------------------- identity, head


@dataclass(frozen=True, slots=True)
class IdentityRecord:
    """The identity node: what :class:`LedgerIdentity` says, and the name of the head node.

    That name is random, so that a ledger made anew at the same root shares no head with the one that was there.
    """

    identity: LedgerIdentity
    head: str

    def encode(self) -> bytes:
        found = self.identity
        return _dump(
            {
                "epoch": found.epoch,
                "format": found.format,
                "head": self.head,
                "ledger_id": found.ledger_id,
                "sealed": found.sealed,
            }
        )


def parse_format(data: bytes) -> int:
    """The format of an identity node, readable whatever else later formats put there. Raises Malformed."""
    return _number(_members(data).get("format"))


def parse_identity(data: bytes) -> IdentityRecord:
    """Raises Malformed."""
    found = _members(data)
    ledger_id, head, sealed = found.get("ledger_id"), found.get("head"), found.get("sealed")
    if set(found) != {"epoch", "format", "head", "ledger_id", "sealed"} or type(sealed) is not bool:
        raise Malformed
    if not isinstance(ledger_id, str) or not isinstance(head, str) or not head.startswith("head-") or "/" in head:
        raise Malformed
    return IdentityRecord(LedgerIdentity(ledger_id, _number(found["epoch"]), _number(found["format"]), sealed), head)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the log: positions of the last event and of the last entry's first event, 0 while it is empty."""

    position: int = 0
    entry: int = 0

    def encode(self) -> bytes:
        return _dump({"entry": self.entry, "position": self.position})


def parse_head(data: bytes) -> Head:
    """Raises Malformed."""
    found = _members(data)
    return Head(_number(found.get("position")), _number(found.get("entry")))


# --------------------------------------------------------------------------------------------------------- streams


@dataclass(frozen=True, slots=True)
class Place:
    """An entry that holds events of a stream, by its position, and the version of the first of them."""

    entry: int
    version: int


@dataclass(frozen=True, slots=True)
class StreamIndex:
    """A stream's node: ``version`` is its last, ``first`` the position of its first event.

    ``places`` are the newest ones; the older ones lie in pages, each named by the version at which it begins.
    """

    first: int
    version: int
    places: tuple[Place, ...]
    pages: tuple[int, ...] = ()

    def encode(self) -> bytes:
        return _dump(
            {
                "first": self.first,
                "pages": list(self.pages),
                "places": _pairs(self.places),
                "version": self.version,
            }
        )

    def appended(self, place: Place, version: int) -> tuple[StreamIndex, Page | None]:
        """The index with one more entry, whose last version is given; and the page to write when this one is full."""
        if len(self.places) < PAGE_PLACES:
            return StreamIndex(self.first, version, (*self.places, place), self.pages), None
        page = Page(self.places)
        return StreamIndex(self.first, version, (place,), (*self.pages, page.version)), page


@dataclass(frozen=True, slots=True)
class Page:
    """Places that a stream's own node has no room for."""

    places: tuple[Place, ...]

    @property
    def version(self) -> int:
        return self.places[0].version

    def encode(self) -> bytes:
        return _dump({"places": _pairs(self.places)})


def parse_index(data: bytes) -> StreamIndex:
    """Raises Malformed."""
    found = _members(data)
    pages = found.get("pages")
    if not isinstance(pages, list):
        raise Malformed
    return StreamIndex(
        _number(found.get("first")),
        _number(found.get("version")),
        _places(found.get("places")),
        tuple(_number(page) for page in pages),
    )


def parse_page(data: bytes) -> Page:
    """Raises Malformed."""
    return Page(_places(_members(data).get("places")))


# --------------------------------------------------------------------------------------------------------- entries


@dataclass(frozen=True, slots=True)
class Row:
    """One event inside an entry; ``stream`` is written as 32 digits."""

    stream: str
    version: int
    topic: str
    state: bytes


def encode_entry(rows: Iterable[StoredEvent], streams: Sequence[str]) -> tuple[bytes, int]:
    """The bytes of an entry, and how many they were before they were deflated.

    A line of JSON says which events follow, then their states lie end to end: deflated where that helps.
    """
    pairs = list(zip(rows, streams, strict=True))
    parts = []
    for stream, run in groupby(pairs, key=lambda pair: pair[1]):
        events = [row for row, _ in run]
        lengths = [[row.topic, len(row.state)] for row in events]
        parts.append({"events": lengths, "first": events[0].originator_version, "stream": stream})
    plain = b"\n".join((_dump({"parts": parts}), b"".join(row.state for row, _ in pairs)))
    if len(plain) < _DEFLATE_FROM_BYTES:
        return _PLAIN + plain, len(plain)
    return _DEFLATED + zlib.compress(plain, 1), len(plain)


def parse_entry(data: bytes) -> list[Row]:
    """The events of an entry. Raises Malformed."""
    header, _, states = _plain(data).partition(b"\n")
    parts = _members(header).get("parts")
    if not isinstance(parts, list):
        raise Malformed
    rows: list[Row] = []
    start = 0
    for stream, version, topic, length in (event for part in parts for event in _events(part)):
        rows.append(Row(stream, version, topic, states[start : start + length]))
        start += length
    if start != len(states):
        raise Malformed
    return rows


def _events(part: Any) -> Iterator[tuple[str, int, str, int]]:
    if not isinstance(part, dict) or not isinstance(part.get("events"), list):
        raise Malformed
    stream, first = part.get("stream"), _number(part.get("first"))
    for version, event in enumerate(part["events"], start=first):
        if not isinstance(event, list) or len(event) != 2:
            raise Malformed
        topic, length = event
        if not isinstance(stream, str) or not isinstance(topic, str):
            raise Malformed
        yield stream, version, topic, _number(length)


def _plain(data: bytes) -> bytes:
    kind, body = data[:1], data[1:]
    if kind == _PLAIN:
        return body
    if kind != _DEFLATED:
        raise Malformed
    inflate = zlib.decompressobj()
    try:
        plain = inflate.decompress(body, ENTRY_BYTES_MAX)
    except zlib.error as error:
        raise Malformed from error
    if not inflate.eof or inflate.unused_data:
        raise Malformed
    return plain


# --------------------------------------------------------------------------------------------------------- JSON


_JSON: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False)


def _dump(value: Any) -> bytes:
    return _JSON.encode(value).encode()


def _members(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Malformed from error
    if not isinstance(found, dict):
        raise Malformed
    return found


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise Malformed
    return value


def _pairs(places: Sequence[Place]) -> list[list[int]]:
    return [[place.entry, place.version] for place in places]


def _places(value: Any) -> tuple[Place, ...]:
    if not isinstance(value, list) or not value:
        raise Malformed
    found = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Malformed
        found.append(Place(_number(pair[0]), _number(pair[1])))
    return tuple(found)
