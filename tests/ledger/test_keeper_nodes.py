"""The nodes of a ledger in Keeper, on a real ZooKeeper: how they come to be, who may do what, and what damage says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import IntegrityError
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from dpone.domain.errors import ErrorCode, LedgerFailed
from dpone.ledger.keeper import KeeperRecorder, open_store
from dpone.ledger.keeper_layout import ENTRY_BYTES_MAX, Layout, parse_identity
from dpone.ledger.keeper_url import KeeperAddress, parse_address
from dpone.ledger.recorder import LedgerIdentity
from dpone.ledger.store import EventLedger, open_ledger
from dpone.ledger.verify import verify_ledger
from tests.servers.zookeeper import ZooKeeper

from .contract import noted
from .events import CODEC, some
from .keeper_nodes import address, events, fails, layout, ledger, opened_up, raw, recorder, tree
from .keeper_server import address_on, made, url_of

__all__ = ["address", "layout", "ledger", "raw", "recorder"]


# ------------------------------------------------------------------------------------------------- coming to be


def test_opening_never_creates(address: KeeperAddress, raw: Any) -> None:
    error = fails(lambda: open_store(address, None), "There is no ledger")
    assert error.code is ErrorCode.LEDGER_UNREACHABLE
    assert raw.exists(address.root) is None


def test_of_many_creators_one_creates(address: KeeperAddress) -> None:
    gate = threading.Barrier(6)

    def create() -> str:
        gate.wait(10)
        with closing(made(address)) as recorder:
            return recorder.identity().ledger_id

    with ThreadPoolExecutor(6) as pool:
        got = [future.result(30) for future in [pool.submit(create) for _ in range(6)]]
    assert len(set(got)) == 1
    with closing(open_store(address, None)) as recorder:
        assert recorder.self_check() == []


def test_an_existing_ledger_is_not_made_anew(ledger: EventLedger, address: KeeperAddress, raw: Any) -> None:
    ledger.append([some()])
    before = tree(raw, address.root)
    with open_ledger(url_of(address), create=True, codec=CODEC) as again:
        assert again.ledger_id == ledger.ledger_id
        assert again.position() == 1
    assert tree(raw, address.root) == before


def test_a_root_that_holds_something_else_is_left_alone(address: KeeperAddress, raw: Any) -> None:
    raw.ensure_path(f"{address.root}/tables/01")
    before = tree(raw, address.root)
    assert fails(lambda: made(address), "holds something, but no ledger").code is ErrorCode.LEDGER_CORRUPT
    assert tree(raw, address.root) == before


def test_a_ledger_without_its_record_is_not_made_anew(
    recorder: KeeperRecorder, address: KeeperAddress, raw: Any
) -> None:
    opened_up(raw, address.root)
    raw.delete(f"{address.root}/identity")
    fails(lambda: open_store(address, None), "There is no ledger")
    fails(lambda: made(address), "holds something, but no ledger")


def test_an_empty_root_that_an_administrator_made_is_taken(address: KeeperAddress, raw: Any) -> None:
    raw.ensure_path(address.root)
    with closing(made(address)) as recorder:
        assert recorder.max_notification_id() is None


def test_a_copy_gets_the_identity_that_it_is_to_have(address: KeeperAddress) -> None:
    wanted = LedgerIdentity(str(uuid4()), 3, 1, False)
    with closing(open_store(address, None, create=True, identity=wanted)) as recorder:
        assert recorder.identity() == wanted


def test_a_newer_format_is_refused_before_anything_is_written(
    ledger: EventLedger, address: KeeperAddress, layout: Layout, raw: Any
) -> None:
    ledger.append([some()])
    record = json.loads(raw.get(layout.identity)[0]) | {"format": 2, "unheard_of": []}
    raw.set(layout.identity, json.dumps(record).encode())
    before = tree(raw, address.root)
    for use in (
        lambda: open_store(address, None),
        lambda: made(address),
        lambda: ledger.append([some()]),
        ledger.recorder.seal,
    ):
        assert fails(use, "has format 2").code is ErrorCode.LEDGER_TOO_NEW
    assert tree(raw, address.root) == before


@pytest.mark.parametrize("record", [b"", b"[]", b"{}", b'{"format":1}', b"\xff", b"[" * 10_000])
def test_a_record_that_cannot_be_read(
    recorder: KeeperRecorder, address: KeeperAddress, layout: Layout, raw: Any, record: bytes
) -> None:
    raw.set(layout.identity, record)
    assert fails(lambda: open_store(address, None), "identity record").code is ErrorCode.LEDGER_CORRUPT


# ------------------------------------------------------------------------------------------- changed under our hands


def removed(raw: Any, root: str) -> None:
    for path in reversed(list(tree(raw, root))):
        opened_up(raw, path)
    raw.delete(root, recursive=True)


def test_a_ledger_that_vanishes_is_not_an_empty_one(ledger: EventLedger, address: KeeperAddress, raw: Any) -> None:
    stream = uuid4()
    ledger.append([noted(stream, 0, "a")])
    removed(raw, address.root)
    for use in (lambda: ledger.read(stream), lambda: ledger.read(uuid4()), ledger.position):
        assert fails(use, "was removed, or replaced").code is ErrorCode.LEDGER_CORRUPT
    fails(lambda: ledger.append([some()]), "was removed, or replaced")
    assert raw.exists(address.root) is None


def test_a_ledger_that_was_made_anew_takes_nothing_from_us(
    ledger: EventLedger, address: KeeperAddress, raw: Any
) -> None:
    removed(raw, address.root)
    with closing(made(address)) as other:
        fails(lambda: ledger.append([some()]), "was removed, or replaced")
        fails(lambda: ledger.read(uuid4()), "was removed, or replaced")
        assert other.max_notification_id() is None


def test_another_epoch_takes_no_append_from_us(ledger: EventLedger, address: KeeperAddress) -> None:
    stream = uuid4()
    ledger.append([noted(stream, 0, "a")])
    with closing(open_store(address, None)) as other:
        other.raise_epoch(2)
        assert other.identity().epoch == 2
    for refused in (noted(stream, 1, "b"), some()):  # what needs no further look at the store, and what does
        fails(lambda refused=refused: ledger.append([refused]), "was removed, or replaced")  # type: ignore[misc]
    with open_ledger(url_of(address), create=False, codec=CODEC) as again:
        assert again.epoch == 2
        again.append([some()])


def test_a_sealed_ledger_takes_no_append_from_anybody(
    ledger: EventLedger, address: KeeperAddress, layout: Layout, raw: Any
) -> None:
    ledger.append([some()])
    with open_ledger(url_of(address), create=False, codec=CODEC) as other:
        other.recorder.seal()
        other.recorder.seal()
        assert other.recorder.identity().sealed
        fails(lambda: other.recorder.raise_epoch(2), "is sealed")
    assert fails(lambda: ledger.append([some()]), "is sealed").code is ErrorCode.LEDGER_CORRUPT
    with open_ledger(url_of(address), create=False, codec=CODEC) as again:
        fails(lambda: again.append([some()]), "is sealed")
        assert verify_ledger(again).passed
    head = layout.head(parse_identity(raw.get(layout.identity)[0]).head)
    for path in (head, layout.identity):  # not even for a client that does not look
        with pytest.raises(NoAuthError):
            raw.set(path, b"{}")
        with pytest.raises(NoAuthError):
            raw.set_acls(path, OPEN_ACL_UNSAFE)


def flood(ledger: EventLedger, stream: UUID) -> None:
    for version in range(100_000):
        ledger.append([noted(stream, version, "a")])


def test_a_seal_in_the_middle_of_a_flood_is_the_end(ledger: EventLedger, address: KeeperAddress) -> None:
    stream = uuid4()
    with open_ledger(url_of(address), create=False, codec=CODEC) as other:
        sealing = threading.Timer(0.1, other.recorder.seal)
        sealing.start()
        with pytest.raises(LedgerFailed, match="is sealed"):
            flood(ledger, stream)
        sealing.join()
        stored = other.read(stream)
        assert stored
        assert other.position() == len(stored)
        assert verify_ledger(other).passed


@pytest.mark.parametrize(
    "change",
    [
        lambda raw, layout, stream: raw.set(layout.entry(1), b"other"),
        lambda raw, layout, stream: raw.delete(layout.entry(1)),
        lambda raw, layout, stream: raw.delete(layout.stream_bucket("00")),
        lambda raw, layout, stream: raw.set(layout.page(stream, 1), b"other"),
    ],
    ids=["change", "delete", "delete a bucket", "change a page"],
)
def test_keeper_itself_refuses_to_forget(
    recorder: KeeperRecorder, layout: Layout, raw: Any, change: Callable[[Any, Layout, str], None]
) -> None:
    stream = uuid4()
    for version in range(1, 70):
        recorder.insert_events(events(stream, version, 1))
    with pytest.raises(NoAuthError):
        change(raw, layout, stream.hex)
    assert recorder.self_check() == []


# -------------------------------------------------------------------------------------------------- sizes, borders


def test_what_does_not_fit_is_refused_before_it_is_sent(recorder: KeeperRecorder) -> None:
    stream = uuid4()
    fits = ENTRY_BYTES_MAX - 200
    recorder.insert_events(events(stream, 1, 1, bytes(fits)))
    assert recorder.select_events(stream)[0].state == bytes(fits)
    for refused in (
        events(stream, 2, 1, bytes(ENTRY_BYTES_MAX)),
        [event for _ in range(7_000) for event in events(uuid4(), 1, 1)],
    ):
        error = fails(lambda refused=refused: recorder.insert_events(refused), "does not fit")  # type: ignore[misc]
        assert error.code is ErrorCode.REQUEST_INVALID
    assert recorder.max_notification_id() == 1
    assert recorder.self_check() == []


def test_what_does_not_compress_fits_as_well(recorder: KeeperRecorder) -> None:
    noise = b"".join(uuid4().bytes for _ in range(ENTRY_BYTES_MAX // 16 - 20))
    recorder.insert_events(events(stream := uuid4(), 1, 1, noise))
    assert recorder.select_events(stream)[0].state == noise


def test_a_long_history_is_read_from_anywhere(recorder: KeeperRecorder, layout: Layout, raw: Any) -> None:
    """Appends of 1 to 2,600 events: over full pages, and over buckets that no entry begins in."""
    stream, other, version, sizes = uuid4(), uuid4(), 1, [1] * 150 + [7] * 150 + [2_600, 1, 999, 1, 1_000, 3]
    for number, size in enumerate(sizes, start=1):
        added = [*events(stream, version, size), *events(other, number, 1)]
        assert recorder.insert_events(added) == list(range(version + number - 1, version + number + size))
        version += size
    last = version - 1
    assert len(raw.get_children(layout.stream(stream.hex))) == len(sizes) // 64
    assert [event.originator_version for event in recorder.select_events(stream)] == list(range(1, version))
    for gt, lte in ((0, 1), (63, 65), (149, 160), (last - 1, last), (1_200, 3_900), (last, None), (5, 5)):
        found = [event.originator_version for event in recorder.select_events(stream, gt=gt, lte=lte)]
        assert found == list(range(gt + 1, (lte or last) + 1))
    assert [event.originator_version for event in recorder.select_events(stream, desc=True, limit=2)] == [
        last,
        last - 1,
    ]
    total = recorder.max_notification_id() or 0
    assert total == last + len(sizes)
    for after in (0, 1, 999, 1_000, 1_001, 2_000, 3_000, 3_999, 4_500, total - 1, total):
        rows = recorder.raw_rows(after, 300)
        assert [row.position for row in rows] == list(range(after + 1, min(after + 300, total) + 1))
    assert recorder.self_check() == []
    assert list(recorder.stream_ids()) == [stream, other]


def test_a_gap_is_refused(recorder: KeeperRecorder) -> None:
    stream = uuid4()
    for refused in (events(stream, 2, 1), [*events(stream, 1, 1), *events(stream, 3, 1)]):
        assert fails(lambda refused=refused: recorder.insert_events(refused), "gap").code is ErrorCode.LEDGER_CORRUPT  # type: ignore[misc]
    with pytest.raises(IntegrityError):
        recorder.insert_events([*events(stream, 1, 1), *events(stream, 1, 1)])
    assert recorder.max_notification_id() is None


# ----------------------------------------------------------------------------------------------------------- damage


@pytest.fixture
def stream(ledger: EventLedger) -> UUID:
    stream = uuid4()
    for version in range(70):
        ledger.append([noted(stream, version, "a")])
    return stream


@pytest.mark.parametrize("number", [1, 30, 70])
def test_a_missing_entry_is_found_and_never_skipped(
    ledger: EventLedger, layout: Layout, raw: Any, stream: UUID, number: int
) -> None:
    opened_up(raw, layout.bucket(0))
    raw.delete(layout.entry(number))
    error = fails(lambda: ledger.read(stream), f"Event {number} of stream")
    assert error.code is ErrorCode.EVIDENCE_INVALID
    assert not verify_ledger(ledger).passed


@pytest.mark.parametrize("data", [b"", b"P", b"Z123", b"P[]\n", b'P{"parts":[{}]}\n', b"Pxx\nyy"])
def test_an_entry_that_cannot_be_read_is_found(
    ledger: EventLedger, layout: Layout, raw: Any, stream: UUID, data: bytes
) -> None:
    opened_up(raw, layout.entry(30))
    raw.set(layout.entry(30), data)
    fails(lambda: ledger.read(stream), "Event 30 of stream")
    report = verify_ledger(ledger)
    assert any(finding.position == 30 for finding in report.findings)


def is_found(ledger: EventLedger) -> bool:
    try:
        return not verify_ledger(ledger).passed
    except LedgerFailed as error:
        return error.code is ErrorCode.LEDGER_CORRUPT


def shortened(index: dict[str, Any]) -> dict[str, Any]:
    return index | {"places": index["places"][:-1], "version": index["version"] - 1}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (shortened, None),
        (lambda index: index | {"version": index["version"] + 1}, "Event 70 of stream"),
        (lambda index: index | {"pages": []}, None),
        (lambda index: index | {"pages": [2]}, "page of a stream is missing"),
        (lambda index: index | {"places": [[5, 70]]}, "Event"),
        (lambda index: {}, "cannot be read"),
    ],
)
def test_an_index_that_does_not_say_what_the_log_says_is_found(
    ledger: EventLedger,
    layout: Layout,
    raw: Any,
    stream: UUID,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    why: str | None,
) -> None:
    path = layout.stream(stream.hex)
    raw.set(path, json.dumps(change(json.loads(raw.get(path)[0]))).encode())
    if why is not None:
        fails(lambda: ledger.read(stream), why)
    assert is_found(ledger)


def test_a_head_that_was_set_back_stores_nothing_over_what_is_there(
    ledger: EventLedger, layout: Layout, raw: Any, stream: UUID
) -> None:
    head = layout.head(parse_identity(raw.get(layout.identity)[0]).head)
    raw.set(head, b'{"entry":39,"position":39}')
    before = raw.get(layout.entry(40))
    assert fails(lambda: ledger.append([some()]), "lies beyond its end").code is ErrorCode.LEDGER_CORRUPT
    assert raw.get(layout.entry(40)) == before
    assert not verify_ledger(ledger).passed


def test_a_stream_whose_node_is_gone_is_found(ledger: EventLedger, layout: Layout, raw: Any, stream: UUID) -> None:
    opened_up(raw, layout.stream_bucket(stream.hex[:2]))
    opened_up(raw, layout.stream(stream.hex))
    raw.delete(layout.stream(stream.hex), recursive=True)
    assert any("has no node" in finding.what for finding in verify_ledger(ledger).findings)


def test_a_root_is_an_address_of_its_own(zookeeper: ZooKeeper) -> None:
    parent = address_on(zookeeper)
    first, second = (parse_address(f"{parent.hosts}{parent.root}/{name}") for name in ("one", "two"))
    with closing(made(first)) as one, closing(made(second)) as two:
        one.insert_events(events(uuid4(), 1, 3))
        assert (one.max_notification_id(), two.max_notification_id()) == (3, None)
        assert one.name == "one"
