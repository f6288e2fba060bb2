"""The Keeper store: a shared ledger in the cluster's own ZooKeeper or ClickHouse Keeper, through kazoo.

The life of an append: one transaction changes the head if nobody has since, checks the identity record, changes the
index of every stream it touches if nobody has since, and creates one node with all its events. A lost reply is
resolved by the ledger above: it reads its own bytes back, and else sends the append again. That moves the head, and a
copy of the first request that still lies somewhere names a head that has moved and can never succeed.

Opening never creates a node, and changes nothing before it knows that the store's format is not newer than this code.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from eventsourcing.persistence import Notification, StoredEvent

from ..domain.errors import ErrorCode, LedgerFailed
from ..domain.limits import LEDGER_WAIT_SECONDS
from .keeper_faults import crowded, not_allowed, not_installed
from .keeper_faults import sealed as sealed_store
from .keeper_layout import IdentityRecord, Layout
from .keeper_url import KeeperAddress, KeeperUser, parse_address, user_of
from .recorder import LedgerIdentity, RawRow, ReplyLost

if TYPE_CHECKING:
    from .keeper_session import Session

_PAGE_ROWS = 500


class KeeperRecorder:
    """A ledger in Keeper that is there. Made by :func:`open_store`."""

    contiguous = True

    def __init__(self, session: Session, layout: Layout) -> None:
        from .keeper_appending import Appender
        from .keeper_reading import Reader, identity_of

        self._session = session
        self._layout = layout
        (node,) = session.read((layout.identity,))
        session.create_as(layout.identity)
        opened = identity_of(node, session.name).value
        self._reader = Reader(session, layout, opened.head)
        self._reader.view(())  # a record without its head is no ledger
        self._appender = Appender(self._reader, opened.identity)

    @property
    def name(self) -> str:
        return self._session.name

    def identity(self) -> LedgerIdentity:
        return self._reader.view(()).identity.value.identity

    def seal(self) -> None:
        """Refuse appends from now on: the record that every append checks changes, and the head becomes read-only."""
        from .keeper_session import Rights

        self._change_identity(sealed=True)
        for path in (self._reader.head_path, self._layout.identity):
            (rights,) = self._session.rights((path,))
            if rights is not Rights.SEALED:
                self._session.restrict(path, Rights.SEALED)

    def raise_epoch(self, epoch: int) -> None:
        """Count one more move or restore. A process that opened the ledger before appends nothing more."""
        self._change_identity(epoch=epoch)

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        return self._appender.append(stored_events) if stored_events else []

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        stream = UUID(str(originator_id))
        found = [
            StoredEvent(originator_id, row.version, row.topic, row.state)
            for row in self._reader.events(stream.hex, gt, lte)
        ]
        ordered = found[::-1] if desc else found
        return ordered if limit is None else ordered[:limit]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        found: list[Notification] = []
        while len(found) < limit:
            wanted = _PAGE_ROWS if topics else limit - len(found)
            rows = self._reader.rows(after, wanted)
            found += [
                self._notification(row)
                for row in rows
                if (not topics or row.topic in topics) and (stop is None or row.position <= stop)
            ]
            if len(rows) < wanted or (stop is not None and rows[-1].position >= stop):
                break
            after = rows[-1].position
        return found[:limit]

    def max_notification_id(self) -> int | None:
        return self._reader.head().position or None

    def stream_ids(self) -> Sequence[UUID]:
        """All streams, in ledger order of their first events."""
        found = sorted((index.first, stream) for stream, index in self._reader.indexes().items())
        return [self._uuid(stream) for _, stream in found]

    def raw_rows(self, after: int, limit: int) -> Sequence[RawRow]:
        return self._reader.rows(after, limit)

    def self_check(self) -> Sequence[str]:
        """Whether the log, the head and the streams' indexes say the same, and whether the nodes' rights are set."""
        from .keeper_checking import faults

        return faults(self._reader)

    def close(self) -> None:
        self._session.close()

    def _change_identity(self, *, sealed: bool | None = None, epoch: int | None = None) -> None:
        from .keeper_session import Change, Reason

        deadline = self._session.deadline()
        while True:
            view = self._reader.view(())
            known = view.identity.value
            wanted = LedgerIdentity(
                known.identity.ledger_id,
                known.identity.epoch if epoch is None else epoch,
                known.identity.format,
                known.identity.sealed if sealed is None else sealed,
            )
            if wanted == known.identity:
                return
            changed = IdentityRecord(wanted, known.head).encode()
            try:
                refused = self._session.commit(
                    [Change(self._layout.identity, changed, view.identity.version)], deadline
                )
            except ReplyLost:
                refused = None  # the next look tells, and a repeated change is the same change
            if refused is not None and refused[1] is Reason.NOT_ALLOWED:
                raise sealed_store(self.name) if known.identity.sealed else not_allowed(self.name)
            if refused is not None and deadline.over:
                raise crowded(self.name, self._session.wait_seconds)

    def _notification(self, row: RawRow) -> Notification:
        if not isinstance(row.originator_id, str) or not isinstance(row.originator_version, int):
            raise self._unreadable(row.position)
        if not isinstance(row.topic, str) or not isinstance(row.state, bytes):
            raise self._unreadable(row.position)
        return Notification(
            originator_id=self._uuid(row.originator_id),
            originator_version=row.originator_version,
            topic=row.topic,
            state=row.state,
            id=row.position,
        )

    def _uuid(self, stream: str) -> UUID:
        try:
            return UUID(hex=stream)
        except ValueError as error:
            raise self._unreadable(None) from error

    def _unreadable(self, position: int | None) -> LedgerFailed:
        where = "" if position is None else f" at position {position}"
        return LedgerFailed(
            ErrorCode.EVIDENCE_INVALID,
            f"An event{where} of the ledger {self.name} cannot be read, or belongs to no stream.",
            next="dpone audit verify",
        )


def open_store(
    address: KeeperAddress,
    user: KeeperUser | None,
    *,
    create: bool = False,
    identity: LedgerIdentity | None = None,
    wait_seconds: float = LEDGER_WAIT_SECONDS,
) -> KeeperRecorder:
    """Open the ledger at ``address``, making it first when ``create`` allows it and there is none.

    A new ledger gets ``identity``, or a fresh one. ``wait_seconds`` bounds every call. Raises LedgerFailed.
    """
    try:
        from .keeper_session import Session
    except ModuleNotFoundError as error:
        raise not_installed() from error
    from .keeper_creating import create_ledger

    layout = Layout(address.root)
    session = Session(address, user, wait_seconds)
    try:
        if create:
            create_ledger(session, layout, identity)
        return KeeperRecorder(session, layout)
    except BaseException:
        session.close()
        raise


def open_url(rest: str, create: bool, *, identity: LedgerIdentity | None = None) -> KeeperRecorder:
    """Open ``keeper://`` + ``rest``, credentials taken from the environment. Raises LedgerFailed."""
    return open_store(parse_address(rest), user_of(os.environ), create=create, identity=identity)
