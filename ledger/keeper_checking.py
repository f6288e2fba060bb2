"""Whether the nodes of a ledger in Keeper say the same: the log, the head, every stream's index, and the rights."""

from __future__ import annotations

from collections.abc import Iterator

from ..domain.errors import LedgerFailed
from .keeper_layout import Head, Place, StreamIndex
from .keeper_reading import Reader
from .keeper_session import Rights


def faults(reader: Reader) -> list[str]:
    """One sentence for each thing that is wrong. Raises LedgerFailed when the store cannot be read."""
    head = reader.head()
    logged, end = _logged(reader, head)
    found = list(_rights(reader, head))
    if end != head.position:
        found.append(f"the head says that position {head.position} is the last, the log ends with {end}")
    found += _streams(reader, head, logged)
    last = reader.last_entry()
    if last > reader.head().entry:  # the head once more: others may append while we look
        found.append(f"an entry lies at position {last}, which is beyond the head")
    return found


def _logged(reader: Reader, head: Head) -> tuple[dict[str, list[tuple[int, int, int]]], int]:
    """For every stream: position of the entry, first and last version in it, as the log itself has them."""
    streams: dict[str, list[tuple[int, int, int]]] = {}
    after, position, entry = 0, 0, 0
    starts = set(reader.entry_positions(head))
    while rows := reader.rows(after, 500):
        for row in rows:
            position = row.position
            entry = position if position in starts else entry
            if isinstance(row.originator_id, str) and isinstance(row.originator_version, int):
                _note(streams.setdefault(row.originator_id, []), entry, row.originator_version)
        after = position
    return streams, position


def _note(spans: list[tuple[int, int, int]], entry: int, version: int) -> None:
    if spans and spans[-1][0] == entry:
        spans[-1] = (entry, spans[-1][1], version)
    else:
        spans.append((entry, version, version))


def _streams(reader: Reader, head: Head, logged: dict[str, list[tuple[int, int, int]]]) -> Iterator[str]:
    indexes = reader.indexes()
    for stream in sorted(set(logged) - set(indexes)):
        yield f"the stream {stream} is in the log and has no node"
    for stream, index in indexes.items():
        if index.first > head.position:
            continue  # appended while we looked
        if not _agrees(reader, head, stream, index, logged.get(stream, [])):
            yield f"the node of stream {stream} does not say what the log says"


def _agrees(reader: Reader, head: Head, stream: str, index: StreamIndex, logged: list[tuple[int, int, int]]) -> bool:
    try:
        places = reader.places(stream, index)
    except LedgerFailed:
        return False
    known = [place for place in places if place.entry <= head.position]
    if known != [Place(entry, first) for entry, first, _ in logged]:
        return False
    return len(known) < len(places) or logged[-1][2] == index.version


def _rights(reader: Reader, head: Head) -> Iterator[str]:
    layout = reader.layout
    sealed = reader.view(()).identity.value.identity.sealed
    record = Rights.SEALED if sealed else Rights.RECORD
    expected = {
        layout.identity: record,
        reader.head_path: record,
        layout.log: Rights.BUCKET,
        layout.streams: Rights.BUCKET,
        layout.bucket(head.entry): Rights.BUCKET,
    }
    if head.entry:
        expected[layout.entry(head.entry)] = Rights.ENTRY
    for (path, wanted), found in zip(expected.items(), reader.session.rights(list(expected)), strict=True):
        if found is not wanted:
            yield f"the rights of the node {path.removeprefix(layout.root + '/')} are missing or changed"
