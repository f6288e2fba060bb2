"""A new ledger in Keeper: all its first nodes at once, or nothing."""

from __future__ import annotations

from secrets import token_hex
from uuid import uuid4

from ..domain.errors import LedgerFailed
from .keeper_faults import not_allowed, occupied, unreachable
from .keeper_layout import STREAM_BUCKETS, Head, IdentityRecord, Layout
from .keeper_session import Create, Operation, Reason, Rights, Session
from .recorder import STORE_FORMAT, LedgerIdentity, ReplyLost

_ATTEMPTS = 3


def create_ledger(session: Session, layout: Layout, identity: LedgerIdentity | None = None) -> bool:
    """Make an empty ledger where none is, with a fresh id unless ``identity`` says which one.

    True when this call made it, False when there was one. A root that holds anything else is refused. Raises
    LedgerFailed.
    """
    record = IdentityRecord(identity or LedgerIdentity(str(uuid4()), 1, STORE_FORMAT, False), f"head-{token_hex(8)}")
    for _ in range(_ATTEMPTS):
        found = _found(session, layout)
        if found is not None:
            return found == record.encode()  # our own, when the reply to the attempt before was lost
        if _created(session, layout, record):
            return True
    raise unreachable(session.name, session.wait_seconds)


def _found(session: Session, layout: Layout) -> bytes | None:
    (identity,) = session.read((layout.identity,))
    return None if identity is None else identity.data


def _created(session: Session, layout: Layout, record: IdentityRecord) -> bool:
    _make_parents(session, layout)
    (children,) = session.children((layout.root,))
    if children:
        if _found(session, layout) is None:
            raise occupied(session.name)
        return False
    root: list[Operation] = [] if children is not None else [Create(layout.root, b"", Rights.PARENT)]
    try:
        refused = session.commit(root + _nodes(layout, record), session.deadline())
    except ReplyLost:
        return False  # a late copy can only find what the next attempt made, and fail
    if refused is not None and refused[1] is Reason.NOT_ALLOWED:
        raise not_allowed(session.name)
    return refused is None


def _nodes(layout: Layout, record: IdentityRecord) -> list[Operation]:
    return [
        Create(layout.identity, record.encode(), Rights.RECORD),
        Create(layout.head(record.head), Head().encode(), Rights.RECORD),
        Create(layout.log, b"", Rights.BUCKET),
        Create(layout.bucket(0), b"", Rights.BUCKET),
        Create(layout.streams, b"", Rights.BUCKET),
        *(Create(layout.stream_bucket(name), b"", Rights.BUCKET) for name in STREAM_BUCKETS),
    ]


def _make_parents(session: Session, layout: Layout) -> None:
    parts = layout.root.split("/")[1:-1]
    paths = ["/" + "/".join(parts[: number + 1]) for number in range(len(parts))]
    missing = [path for path, node in zip(paths, _nodes_at(session, paths), strict=True) if node is None]
    for path in missing:
        try:
            refused = session.commit([Create(path, b"", Rights.PARENT)], session.deadline())
        except ReplyLost as lost:
            cause = lost.__cause__
            raise (
                cause if isinstance(cause, LedgerFailed) else unreachable(session.name, session.wait_seconds)
            ) from lost
        if refused is not None and refused[1] is not Reason.TAKEN:
            raise not_allowed(session.name)


def _nodes_at(session: Session, paths: list[str]) -> list[list[str] | None]:
    return session.children(paths)
