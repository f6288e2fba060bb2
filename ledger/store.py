"""The ledger that the decisions use: verified reads and atomic, chained appends over one store.

:func:`open_ledger` opens one by its URL. Adding a store is a file next to this one and a line in ``_STORES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from secrets import token_hex
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from eventsourcing.persistence import IntegrityError, StoredEvent

from ..domain.errors import AppendConflict, AppendUnknown, ErrorCode, LedgerFailed
from ..domain.ports import Recorded, StreamAppend
from .chain import GENESIS, ChainBroken, check_previous
from .mapper import EventCodec, Mapper, domain_codec
from .recorder import LedgerIdentity, RawRow, ReplyLost, StoreRecorder
from .sql import Connect

_PAGE_ROWS: Final = 500
_SAFE: Final = "Nothing was changed or appended. A ledger that cannot be trusted is never continued."


@dataclass(frozen=True, slots=True)
class Notified:
    """An event in ledger order: its position, counted from 1, and the event."""

    position: int
    recorded: Recorded


@dataclass(frozen=True, slots=True)
class _Head:
    """A stream's last event as far as this process knows: nothing can change below it."""

    version: int
    digest: str


class EventLedger:
    """Implements :class:`dpone.domain.ports.Ledger` over any :class:`~dpone.ledger.recorder.StoreRecorder`."""

    def __init__(self, recorder: StoreRecorder, codec: EventCodec, identity: LedgerIdentity) -> None:
        self.recorder = recorder
        self.mapper = Mapper(codec)
        self._identity = identity
        self._heads: dict[UUID, _Head] = {}

    @property
    def ledger_id(self) -> str:
        """The UUID minted when this ledger was created."""
        return self._identity.ledger_id

    @property
    def epoch(self) -> int:
        """How often this ledger was moved or restored, counted from 1."""
        return self._identity.epoch

    def read(self, stream: UUID) -> Sequence[Recorded]:
        """All events of a stream, its chain verified from the first to the last.

        Raises LedgerFailed: the store's own faults, or EVIDENCE_INVALID naming the stream, the version and what broke.
        """
        recorded: list[Recorded] = []
        previous = GENESIS
        for expected, stored in enumerate(self.recorder.select_events(stream), start=1):
            try:
                _check_version(stored, expected)
                link = self.mapper.check(stream, stored)
                check_previous(link, previous)
                recorded.append(self.mapper.decode(stream, stored, link))
            except ChainBroken as broken:
                raise self._broken(stream, expected, broken) from broken
            previous = link.digest
        if recorded:
            self._heads[stream] = _Head(len(recorded), previous)
        return recorded

    def append(self, appends: Sequence[StreamAppend]) -> None:
        """Store all events of all streams in one transaction, or nothing.

        Raises AppendConflict when a stream has moved past ``expected``, AppendUnknown when the reply was lost and the
        outcome could not be established, LedgerFailed otherwise. ValueError for a call that no decision can make: no
        events, one stream twice, an event outside the table.
        """
        _check_call(appends)
        append_id = token_hex(16)
        rows: list[StoredEvent] = []
        heads: dict[UUID, _Head] = {}
        for part in appends:
            stored, heads[part.stream] = self._chained(part, append_id)
            rows += stored
        try:
            self._insert(rows)
        except IntegrityError as error:
            self._forget(heads)
            raise AppendConflict from error
        except LedgerFailed:
            self._forget(heads)
            raise
        self._heads |= heads

    def position(self) -> int:
        """The position of the last event; 0 for an empty ledger."""
        return self.recorder.max_notification_id() or 0

    def notifications(self, start: int, limit: int) -> Sequence[Notified]:
        """At most ``limit`` events from position ``start`` on, in ledger order, each checked by itself.

        Raises LedgerFailed with EVIDENCE_INVALID naming the position.
        """
        return [self._notified(row) for row in self.recorder.raw_rows(start - 1, limit)]

    def streams(self) -> Iterator[UUID]:
        """All streams in the order of their first events."""
        return iter(self.recorder.stream_ids())

    def raw_rows(self) -> Iterator[RawRow]:
        """Everything in the store, unchecked, in ledger order."""
        after = 0
        while page := self.recorder.raw_rows(after, _PAGE_ROWS):
            yield from page
            after = page[-1].position

    def close(self) -> None:
        """Let go of the store. Idempotent."""
        self.recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------- appending

    def _chained(self, part: StreamAppend, append_id: str) -> tuple[list[StoredEvent], _Head]:
        head = self._head(part)
        rows: list[StoredEvent] = []
        for event in part.events:
            recorded = Recorded(part.stream, head.version + 1, event)
            stored, digest = self.mapper.to_stored(recorded, head.digest, append_id)
            head = _Head(recorded.version, digest)
            rows.append(stored)
        return rows, head

    def _head(self, part: StreamAppend) -> _Head:
        if part.expected == 0:
            return _Head(0, GENESIS)
        known = self._heads.get(part.stream)
        if known is not None and known.version == part.expected:
            return known
        found = self.recorder.select_events(part.stream, gt=part.expected - 1, lte=part.expected)
        try:
            if not found:
                raise ChainBroken("it was read before and is not there now")
            return _Head(part.expected, self.mapper.check(part.stream, found[0]).digest)
        except ChainBroken as broken:
            raise self._broken(part.stream, part.expected, broken) from broken

    def _insert(self, rows: Sequence[StoredEvent]) -> None:
        """Insert, and after a lost reply establish what became of it: by own bytes, then by the same insert again."""
        try:
            self.recorder.insert_events(rows)
            return
        except ReplyLost as lost:
            first = lost
        if self._is_stored(rows, first):
            return
        # "Absent" alone is not final, a buffered copy may still arrive: only the same insert again settles it.
        try:
            self.recorder.insert_events(rows)
        except IntegrityError:
            if not self._is_stored(rows, first):
                raise
        except (ReplyLost, LedgerFailed) as again:
            if not self._is_stored(rows, again):
                raise _unknown(again) from again

    def _is_stored(self, rows: Sequence[StoredEvent], lost: Exception) -> bool:
        """Whether these very bytes are stored; the random append id in them makes them ours and nobody else's."""
        row = rows[0]
        try:
            found = self.recorder.select_events(
                row.originator_id, gt=row.originator_version - 1, lte=row.originator_version
            )
        except LedgerFailed as error:
            raise _unknown(lost) from error
        return bool(found) and found[0].state == row.state

    def _forget(self, streams: dict[UUID, _Head]) -> None:
        for stream in streams:
            self._heads.pop(stream, None)

    # --------------------------------------------------------------------------------------------------- reading

    def _notified(self, row: RawRow) -> Notified:
        try:
            stored = stored_event(row)
            stream = UUID(str(stored.originator_id))
            recorded = self.mapper.decode(stream, stored, self.mapper.check(stream, stored))
        except ChainBroken as broken:
            raise LedgerFailed(
                ErrorCode.EVIDENCE_INVALID,
                f"The event at position {row.position} of the ledger {self.recorder.name} is not what was once "
                f"appended: {broken}.",
                safe=_SAFE,
                next="dpone audit verify",
            ) from broken
        return Notified(row.position, recorded)

    def _broken(self, stream: UUID, version: int, broken: ChainBroken) -> LedgerFailed:
        return LedgerFailed(
            ErrorCode.EVIDENCE_INVALID,
            f"Event {version} of stream {stream} in the ledger {self.recorder.name} is not what was once appended: "
            f"{broken}.",
            safe=_SAFE,
            next="dpone audit verify",
        )


def stored_event(row: RawRow) -> StoredEvent:
    """A raw row as a stored event, if its stream, version, topic and state are stored as such. Raises ChainBroken."""
    if not isinstance(row.originator_id, str):
        raise ChainBroken("its stream is not stored as text")
    try:
        stream = UUID(hex=row.originator_id)
    except ValueError as error:
        raise ChainBroken("its stream is not a UUID") from error
    if stream.hex != row.originator_id:
        raise ChainBroken("its stream is not written as 32 lower-case digits")
    if type(row.originator_version) is not int or not isinstance(row.topic, str) or not isinstance(row.state, bytes):
        raise ChainBroken("its version, topic or state is not stored as such")
    return StoredEvent(stream, row.originator_version, row.topic, row.state)


def _check_version(stored: StoredEvent, expected: int) -> None:
    if stored.originator_version != expected:
        raise ChainBroken("it is missing")


def _check_call(appends: Sequence[StreamAppend]) -> None:
    if not appends or not all(part.events for part in appends):
        raise ValueError("an append holds at least one event for each of its streams")
    if len({part.stream for part in appends}) != len(appends):
        raise ValueError("an append names each stream once")


def _unknown(error: Exception) -> AppendUnknown:
    cause = error if isinstance(error, LedgerFailed) else error.__cause__
    known = cause if isinstance(cause, LedgerFailed) else None
    return AppendUnknown(
        known.code if known else ErrorCode.LEDGER_UNREACHABLE,
        "The reply to an append was lost, and whether it was stored could not be established."
        + (f" {known.what}" if known else ""),
        safe="Everything is left in place: the next attempt reads what was stored and continues from there.",
        next=(known.next if known else None) or "Repeat the same command.",
    )


# ------------------------------------------------------------------------------------------------------ opening

_STORES: Final = {"sqlite": "sqlite", "postgresql": "postgres", "keepermap": "keepermap", "keeper": "keeper"}
"""URL scheme → the module in this package whose ``open_url(rest, create, identity=…)`` opens such a store."""

_EXTRAS: Final = {"psycopg": "postgres", "psycopg_pool": "postgres"}
"""The package that a store's module is made with → the extra that installs it."""

_CONNECTED: Final = ("keepermap",)
"""Schemes whose stores lie behind a connection: their ``open_url`` also takes what makes one."""


def open_ledger(
    url: str,
    *,
    create: bool,
    codec: EventCodec | None = None,
    connect: Connect | None = None,
    identity: LedgerIdentity | None = None,
) -> EventLedger:
    """Open the ledger at ``url``: ``sqlite:///absolute/path``, ``postgresql://…``, ``keepermap://reference/database``.

    ``create`` makes a new, empty one where none is; without it, a missing ledger is an error. ``connect`` binds the
    connection reference of a URL that has one; ``identity`` is what a new one gets instead of a fresh identity, for a
    copy. Raises LedgerFailed: REQUEST_INVALID for a URL that is wrong, LEDGER_UNREACHABLE, LEDGER_CORRUPT,
    LEDGER_TOO_NEW, STORAGE_FULL.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _STORES:
        raise _refused(scheme if separator else None)
    try:
        open_url: Callable[..., StoreRecorder] = import_module(f".{_STORES[scheme]}", __package__).open_url
    except ModuleNotFoundError as error:
        raise _not_installed(scheme, error) from error
    if scheme in _CONNECTED and connect is None:
        raise _refused(scheme)
    connections = (connect,) if scheme in _CONNECTED else ()
    recorder = open_url(rest, create, *connections, identity=identity)
    try:
        return EventLedger(recorder, codec or domain_codec(), recorder.identity())
    except BaseException:
        recorder.close()
        raise


def _not_installed(scheme: str, error: ModuleNotFoundError) -> Exception:
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return error
    return LedgerFailed(
        ErrorCode.REQUEST_INVALID,
        f"A {scheme}:// ledger needs {package}, which is not installed.",
        next=f"pip install 'dpone-replay[{extra}]'",
    )


def _refused(scheme: str | None) -> LedgerFailed:
    if scheme in _CONNECTED:
        what = f"A {scheme}:// ledger cannot be opened here: nothing binds its connection."
    else:
        what = "The ledger's URL is not one that this release knows."  # not quoted: it could hold a password
    forms = "sqlite:///absolute/path, postgresql://…, keeper://host:port,…/root or keepermap://connection/database"
    return LedgerFailed(ErrorCode.REQUEST_INVALID, what, next=f"Use --ledger {forms}")
