"""Appending to a ledger in Keeper: one transaction, the head first.

The head's version orders all appends; a stream's own version decides races. What was read or written last is
remembered, so an append is one request; when the memory is stale Keeper says so, and nothing was done.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from uuid import UUID

from eventsourcing.persistence import IntegrityError, StoredEvent

from ..domain.errors import LedgerFailed
from .keeper_faults import crowded, damaged, gap, not_allowed, replaced, sealed, too_large
from .keeper_layout import (
    ENTRY_BYTES_MAX,
    REQUEST_BYTES_MAX,
    Head,
    Place,
    StreamIndex,
    bucket_name,
    encode_entry,
)
from .keeper_reading import Reader, Versioned, View
from .keeper_session import Change, Check, Create, Deadline, Operation, Reason, Rights
from .recorder import LedgerIdentity, ReplyLost

TAKEN = "this version of the stream is taken"
_REMEMBERED_STREAMS = 256
_NODE_BYTES = 100  # what a request adds to a node's path and data: lengths, rights, flags


@dataclass(frozen=True, slots=True)
class _Part:
    """The versions that an append adds to one stream, and how many events of the append stand before them."""

    first: int
    last: int
    before: int


@dataclass(frozen=True, slots=True)
class _Batch:
    """An append: its entry's bytes, the number of its events, and what each stream gets."""

    entry: bytes
    events: int
    parts: dict[str, _Part]


class Appender:
    """The only writer of this process; waits for its turn within the bound."""

    def __init__(self, reader: Reader, identity: LedgerIdentity) -> None:
        self._reader = reader
        self._session = reader.session
        self._identity = identity
        self._turn = Lock()
        self._view: View | None = None

    def append(self, rows: Sequence[StoredEvent]) -> list[int]:
        """Store all rows or nothing, and return their positions.

        Raises IntegrityError when a version of a stream is taken, ReplyLost, LedgerFailed.
        """
        deadline = self._session.deadline()
        batch = self._batch(rows)
        if not self._turn.acquire(timeout=deadline.left):
            raise crowded(self._session.name, self._session.wait_seconds)
        try:
            return self._append(batch, deadline)
        except (ReplyLost, LedgerFailed):
            self._view = None  # nobody knows now what is there
            raise
        finally:
            self._turn.release()

    # -------------------------------------------------------------------------------------------------- one append

    def _append(self, batch: _Batch, deadline: Deadline) -> list[int]:
        view, fresh = self._known(batch)
        attempt = 0
        while True:
            self._check_identity(view)
            if not _fits(view, batch):
                if fresh:
                    raise gap(self._session.name)
                view, fresh = self._read(batch), True
                continue
            operations, after = self._operations(view, batch)
            refused = self._session.commit(operations, deadline)
            if refused is None:
                self._remember(after)
                first = view.head.value.position + 1
                return list(range(first, first + batch.events))
            view, fresh = self._after_refusal(view, batch, refused[1], operations[refused[0]]), True
            if deadline.over:
                raise crowded(self._session.name, self._session.wait_seconds)
            attempt += 1
            if attempt > 1:  # the first loser need not wait: it has just read where the end is
                time.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.05)))  # noqa: S311

    def _known(self, batch: _Batch) -> tuple[View, bool]:
        view = self._view
        if view is None or any(stream not in view.streams for stream in batch.parts):
            return self._read(batch), True
        return view, False

    def _read(self, batch: _Batch) -> View:
        found = self._reader.view(list(batch.parts))
        if self._view is not None:
            found = replace(found, streams={**self._view.streams, **found.streams})
        self._view = found
        return found

    def _remember(self, after: View) -> None:
        streams = after.streams
        if len(streams) > _REMEMBERED_STREAMS:
            streams = dict(list(streams.items())[-_REMEMBERED_STREAMS // 2 :])
        self._view = replace(after, streams=streams)

    def _after_refusal(self, view: View, batch: _Batch, reason: Reason, refused: Operation) -> View:
        found = self._read(batch)
        self._check_identity(found)
        if reason is Reason.NOT_ALLOWED:
            raise not_allowed(self._session.name)
        own = {stream: view.streams[stream] for stream in batch.parts}
        same = own == {stream: found.streams[stream] for stream in batch.parts}
        same = same and (found.head, found.identity.version) == (view.head, view.identity.version)
        if same and reason is not Reason.MOVED:
            what = "a node is missing" if reason is Reason.ABSENT else "a node lies beyond its end"
            raise damaged(self._session.name, f"{what} ({type(refused).__name__.lower()} was refused)")
        return found

    def _check_identity(self, view: View) -> None:
        found, opened = view.identity.value.identity, self._identity
        if found.sealed:
            raise sealed(self._session.name)
        if (found.ledger_id, found.epoch, found.format) != (opened.ledger_id, opened.epoch, opened.format):
            raise replaced(self._session.name)

    # -------------------------------------------------------------------------------------------------- the request

    def _batch(self, rows: Sequence[StoredEvent]) -> _Batch:
        streams = [_hex(row.originator_id) for row in rows]
        parts: dict[str, _Part] = {}
        for number, (row, stream) in enumerate(zip(rows, streams, strict=True)):
            part = parts.get(stream)
            if part is not None and row.originator_version <= part.last:
                raise IntegrityError(TAKEN)
            if part is not None and row.originator_version != part.last + 1:
                raise gap(self._session.name)
            version = row.originator_version
            parts[stream] = replace(part, last=version) if part else _Part(version, version, number)
        entry, plain_bytes = encode_entry(rows, streams)
        if plain_bytes > ENTRY_BYTES_MAX:
            raise too_large(self._session.name, plain_bytes, ENTRY_BYTES_MAX)
        return _Batch(entry, len(rows), parts)

    def _operations(self, view: View, batch: _Batch) -> tuple[list[Operation], View]:
        """The transaction, and what is known once it is done."""
        layout = self._reader.layout
        end = view.head.value
        position = end.position + 1
        head = Head(end.position + batch.events, position)
        operations: list[Operation] = [
            Change(self._reader.head_path, head.encode(), view.head.version),
            Check(layout.identity, view.identity.version),
        ]
        streams = dict(view.streams)
        for stream, part in batch.parts.items():
            added, index = self._stream(stream, view.streams[stream], part, position)
            operations += added
            del streams[stream]  # the streams used last are remembered longest
            streams[stream] = index
        if bucket_name(position) != bucket_name(end.entry):
            operations.append(Create(layout.bucket(position), b"", Rights.BUCKET))
        operations.append(Create(layout.entry(position), batch.entry, Rights.ENTRY))
        self._check_size(operations)
        return operations, View(Versioned(head, view.head.version + 1), view.identity, streams)

    def _stream(
        self, stream: str, known: Versioned[StreamIndex] | None, part: _Part, position: int
    ) -> tuple[list[Operation], Versioned[StreamIndex]]:
        layout, place = self._reader.layout, Place(position, part.first)
        if known is None:
            index = StreamIndex(position + part.before, part.last, (place,))
            return [Create(layout.stream(stream), index.encode(), Rights.STREAM)], Versioned(index, 0)
        index, page = known.value.appended(place, part.last)
        operations: list[Operation] = [Change(layout.stream(stream), index.encode(), known.version)]
        if page is not None:
            operations.append(Create(layout.page(stream, page.version), page.encode(), Rights.ENTRY))
        return operations, Versioned(index, known.version + 1)

    def _check_size(self, operations: Sequence[Operation]) -> None:
        found = sum(
            _NODE_BYTES + len(operation.path) + (0 if isinstance(operation, Check) else len(operation.data))
            for operation in operations
        )
        if found > REQUEST_BYTES_MAX:
            raise too_large(self._session.name, found, REQUEST_BYTES_MAX)


def _fits(view: View, batch: _Batch) -> bool:
    """Whether every stream ends where the append continues it; a stream may begin with version 0 or 1.

    Raises IntegrityError when a version is taken. A stream only grows, so that is true however old the view is.
    """
    for stream, part in batch.parts.items():
        known = view.streams[stream]
        if known is None:
            if part.first > 1:
                return False
        elif part.first <= known.value.version:
            raise IntegrityError(TAKEN)
        elif part.first != known.value.version + 1:
            return False
    return True


def _hex(originator_id: UUID | str) -> str:
    return (originator_id if isinstance(originator_id, UUID) else UUID(originator_id)).hex
