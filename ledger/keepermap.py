"""The KeeperMap store: two ClickHouse tables over the cluster's Keeper, for machines that reach only the servers.

The life of an append: take the position after the last one known, and insert, as one strict statement and therefore one
Keeper transaction, a row for each event under its stream and version and a row for each position. Strict means that a
key which exists refuses the whole insert; no row is ever changed. A server that retries by itself may answer that its
own first try exists, so every row holds a random id of the insert, by which it is known again. Whatever the answer was,
reading the keys decides: own rows are success, another's event at that version is a conflict, another's event at that
position means the next position, and nothing at all is a lost reply, which the ledger above resolves.

Positions are taken without a gap, so who follows the log skips nothing. A seal is a row at the next position, which
every later append would have to take.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from secrets import token_hex
from threading import Lock
from typing import Any, Final, cast
from uuid import UUID, uuid4

from eventsourcing.persistence import ApplicationRecorder, IntegrityError, Notification, StoredEvent

from ..domain.errors import DponeError
from ..domain.limits import LEDGER_WAIT_SECONDS
from . import keepermap_layout as layout
from .keepermap_faults import busy, explain, is_certain, missing, not_strict, sealed, too_large, too_new
from .keepermap_order import Order, Row, parse_row
from .recorder import STORE_FORMAT, LedgerIdentity, RawRow, ReplyLost
from .sql import Connect, SqlFailed, SqlSession

_PAGE_KEYS: Final = 200
_STREAM_KEYS: Final = 64
_PROOFS: Final = 5
_SILENT: Final = (None, 159)  # no answer at all, TIMEOUT_EXCEEDED


class KeeperMapRecorder(ApplicationRecorder):
    """A recorder as the event sourcing library describes it, over SQL. Made by :func:`open_store`."""

    contiguous = True

    def __init__(self, session: SqlSession, database: str, name: str, wait_seconds: float) -> None:
        self._session = session
        self._database = database
        self._name = name
        self._wait_seconds = wait_seconds
        self._order = Order(self._rows)
        self._appending = Lock()

    @property
    def name(self) -> str:
        return self._name

    def identity(self) -> LedgerIdentity:
        """Read the identity record and the log's end. Raises LedgerFailed."""
        return self._identity()[1]

    def seal(self) -> None:
        """Take the next position for ever."""
        token, end = token_hex(16), time.monotonic() + self._wait_seconds
        while time.monotonic() < end:
            position = self._order.last() + 1
            if self._order.sealed:
                return
            self._try(layout.insert_seal(self._database, position, token))
        raise busy(self._name)

    def raise_epoch(self, epoch: int) -> None:
        """Count one more move or restore: a further identity record, none is changed."""
        number, found = self._identity()
        if found.epoch < epoch:
            self._try(layout.insert_identity(self._database, number + 1, replace(found, epoch=epoch)))
        if self.identity().epoch < epoch:
            raise busy(self._name)

    # ------------------------------------------------------------------------------------------------- appending

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Store all or nothing; returns positions. Raises IntegrityError, ReplyLost, LedgerFailed."""
        rows = list(stored_events)
        keys = [layout.stream_key(row.originator_id, row.originator_version) for row in rows]
        if not rows:
            return []
        if len(set(keys)) != len(keys):
            raise IntegrityError("one version of a stream twice in an append")
        if sum(len(row.state) + len(row.topic) + layout.ROW_BYTES_EXTRA for row in rows) > layout.ENTRY_BYTES_MAX:
            raise too_large(self._name)
        end = time.monotonic() + self._wait_seconds
        # Threads of one process would only take each other's position.
        if not self._appending.acquire(timeout=self._wait_seconds):
            raise busy(self._name)
        try:
            first = self._insert(rows, keys, end)
        finally:
            self._appending.release()
        return list(range(first, first + len(rows)))

    def _insert(self, rows: Sequence[StoredEvent], keys: Sequence[str], end: float) -> int:
        token = token_hex(16)
        while time.monotonic() < end:
            first = self._order.known() + 1
            if self._order.sealed:
                raise sealed(self._name)
            answer = self._try(layout.insert_events(self._database, rows, first, token))
            if answer is None:
                self._order.grew(first + len(rows) - 1)
                return first
            stored = self._settle(keys, first, token, answer)
            if stored is not None:
                return stored
            time.sleep(random.uniform(0, 0.01))  # noqa: S311 - several processes race for the same position
        raise busy(self._name)

    def _try(self, statement: str) -> SqlFailed | None:
        """Run an insert. None: done; else a failure after which only reading tells what happened."""
        try:
            self._session.run(statement)
        except SqlFailed as error:
            if is_certain(error):
                raise explain(error, self._name) from None
            return error
        return None

    def _settle(self, keys: Sequence[str], first: int, token: str, answer: SqlFailed) -> int | None:
        """The position at which own rows stand, or None: the position was taken, and the log is known further."""
        if answer.code in _SILENT:  # asking the same silent server again would only take longer
            raise ReplyLost from explain(answer, self._name)
        try:
            found = self._rows([*keys, layout.log_key(first)])
        except DponeError as error:
            raise ReplyLost from error
        taken = found.pop(layout.log_key(first), None)
        if taken is not None and taken.insert_id == token:
            self._order.grew(first + len(keys) - 1)
            return first
        own = [row.position - keys.index(key) for key, row in found.items() if row.insert_id == token]
        if own:
            self._order.grew(own[0] + len(keys) - 1)
            return own[0]
        if found:
            raise IntegrityError("this version of the stream is taken")
        if taken is None:
            raise ReplyLost from explain(answer, self._name)
        self._order.grew(first, sealed=taken.topic == layout.SEALED.encode())
        self._order.last()
        return None

    # --------------------------------------------------------------------------------------------------- reading

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """A stream's events, asked for by their keys: Keeper finds no ranges."""
        found = [row.event() for row in self._stream(originator_id, 0 if gt is None else gt + 1, lte)]
        return (found[::-1] if desc else found)[:limit]

    def _stream(self, stream: UUID | str, start: int, stop: int | None) -> Iterator[Row]:
        size = _STREAM_KEYS
        while stop is None or start <= stop:
            end = start + size if stop is None else min(start + size, stop + 1)
            keys = [layout.stream_key(stream, version) for version in range(start, end)]
            found = self._whole(keys)
            yield from (found[key] for key in keys if key in found)
            if stop is None and not any(key in found for key in keys[len(keys) // 2 :]):
                return  # half a page without an event is the end: one that was removed leaves a smaller hole
            start, size = end, min(size * 2, _PAGE_KEYS)

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events of all streams in ledger order."""
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        found: list[Notification] = []
        while len(found) < limit:
            page = self._page(after, min(_PAGE_KEYS, limit if not topics else _PAGE_KEYS))
            for position, row in page:
                if row is None or (stop is not None and position > stop) or (topics and row.text() not in topics):
                    continue
                event = row.event()
                found.append(
                    Notification(event.originator_id, event.originator_version, event.topic, event.state, position)
                )
            if not page or (stop is not None and page[-1][0] >= stop):
                break
            after = page[-1][0]
        return found[:limit]

    def max_notification_id(self) -> int | None:
        return self._order.last() or None

    def stream_ids(self) -> Sequence[UUID]:
        """All streams in the order of their first events. Reads every key of the store."""
        return [UUID(hex=row[0]) for row in self._run(layout.select_streams(self._database))]

    def raw_rows(self, after: int, limit: int) -> Sequence[RawRow]:
        return [
            RawRow(position, None, None, None, None) if row is None else row.raw(position)
            for position, row in self._page(after, min(limit, _PAGE_KEYS))
        ]

    def self_check(self) -> Sequence[str]:
        """Whether each event has one place in the order, and each place an event."""
        events, places, rows = (int(count) for count in self._run(layout.select_counts(self._database))[0])
        last = self._order.last()
        if events == places == last and rows == events + places + int(self._order.sealed):
            return []
        return [f"the store holds {events} events, {places} places in their order and {last} positions"]

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Any:
        raise NotImplementedError("followers ask for positions")

    def close(self) -> None:
        self._session.close()

    def _page(self, after: int, limit: int) -> list[tuple[int, Row | None]]:
        places = self._whole([layout.log_key(position) for position in range(after + 1, after + 1 + limit)])
        taken = [place for place in places.values() if place.topic != layout.SEALED.encode()]
        keys = {place.position: layout.stream_key(place.stream, place.version) for place in taken}
        found = self._rows(list(keys.values())) if keys else {}
        return [(position, found.get(key)) for position, key in sorted(keys.items())]

    def _whole(self, keys: Sequence[str]) -> dict[str, Row]:
        """Consecutive keys as they stood at one moment, whole appends only.

        The server asks Keeper for each key by itself, in any order, so a page may hold a later one and lack an earlier
        one. What an append stored with a key that was found is there when it is asked for again.
        """
        found = self._rows(keys)
        while found:
            last = max(index for index, key in enumerate(keys) if key in found)
            lacking = [key for key in keys[: last + 2] if key not in found]
            more = self._rows(lacking) if lacking else {}
            if not more:
                return found
            found |= more
        return found

    def _rows(self, keys: Sequence[str]) -> dict[str, Row]:
        parsed = [parse_row(row) for row in self._run(layout.select_rows(self._database, keys))]
        return {row.key: row for row in parsed}

    def _run(self, statement: str) -> Sequence[Sequence[str]]:
        try:
            return self._session.run(statement)
        except SqlFailed as error:
            raise explain(error, self._name) from None

    def _identity(self) -> tuple[int, LedgerIdentity]:
        rows = self._run(layout.select_identity(self._database))
        if not rows:
            raise missing(self._name)
        key, ledger_id, epoch, store_format = rows[0]
        if int(store_format) > STORE_FORMAT:
            raise too_new(self._name, int(store_format), STORE_FORMAT)
        self._order.last()
        found = LedgerIdentity(ledger_id, int(epoch), int(store_format), self._order.sealed)
        return int(key.rpartition("/")[2]), found


def create_store(session: SqlSession, database: str, name: str, identity: LedgerIdentity | None = None) -> None:
    """Create the tables and the identity record where they are missing, and prove that strict mode holds.

    The proof is a real insert of a key that exists, which must be refused. Raises LedgerFailed.
    """
    try:
        for statement in layout.creating(database):
            session.run(statement)
        if not session.run(layout.select_identity(database)):
            _insert_first(session, database, identity or LedgerIdentity(str(uuid4()), 1, STORE_FORMAT, False))
        prove_strict(session, database, name)
    except SqlFailed as error:
        raise explain(error, name) from None


def prove_strict(session: SqlSession, database: str, name: str) -> None:
    """Insert the newest identity record once more, as it is. Raises LedgerFailed unless that is refused."""
    key, ledger_id, epoch, store_format = session.run(layout.select_identity(database))[0]
    identity = LedgerIdentity(ledger_id, int(epoch), int(store_format), False)
    again = layout.insert_identity(database, int(key.rpartition("/")[2]), identity)
    failed: SqlFailed | None = None
    for _ in range(_PROOFS):
        try:
            session.run(again)
        except SqlFailed as error:
            if error.exists:
                return
            failed = error  # no answer from Keeper proves nothing
            continue
        raise not_strict(name)
    raise explain(cast(SqlFailed, failed), name)


def _insert_first(session: SqlSession, database: str, identity: LedgerIdentity) -> None:
    try:
        session.run(layout.insert_identity(database, 1, identity))
    except SqlFailed:
        if not session.run(layout.select_identity(database)):  # of processes that create at once, one does
            raise


def open_store(
    session: SqlSession, database: str, name: str, *, wait_seconds: float = LEDGER_WAIT_SECONDS
) -> KeeperMapRecorder:
    """Open an existing ledger; never creates one. Raises LedgerFailed: unreachable, missing, too new."""
    recorder = KeeperMapRecorder(session, database, name, wait_seconds)
    recorder.identity()
    return recorder


def open_url(rest: str, create: bool, connect: Connect, *, identity: LedgerIdentity | None = None) -> KeeperMapRecorder:
    """Open ``keepermap://`` + ``rest``, creating the ledger first when ``create`` allows it.

    ``connect`` binds the URL's connection reference. Raises LedgerFailed, and what ``connect`` raises.
    """
    reference, database = layout.parse(rest)
    name = f"{reference}/{database}"
    session = connect(reference)
    try:
        if create:
            create_store(session, database, name, identity)
        return open_store(session, database, name)
    except BaseException:
        session.close()
        raise
