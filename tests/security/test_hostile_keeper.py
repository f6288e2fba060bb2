"""A Keeper whose nodes somebody else wrote: other shapes, bombs, strange names. On a real ZooKeeper.

Whoever may write the ledger's nodes can stop it; nobody can make it crash, wait, fill the memory, repeat what a node
says, or believe in an event whose chain is broken.
"""

from __future__ import annotations

import json
import resource
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from uuid import UUID, uuid4

import pytest
from kazoo.security import OPEN_ACL_UNSAFE

from dpone.domain.errors import ErrorCode, LedgerFailed
from dpone.ledger.keeper import KeeperRecorder, open_store
from dpone.ledger.keeper_layout import Layout
from dpone.ledger.keeper_url import KeeperAddress
from dpone.ledger.store import EventLedger
from dpone.ledger.verify import verify_ledger
from tests.ledger.contract import noted
from tests.ledger.events import CODEC, some
from tests.ledger.keeper_server import address_on, made, raw
from tests.servers.zookeeper import ZooKeeper

__all__ = ["raw"]

CANARY = "c4n4ry-in-a-node"
_SECONDS_MAX = 20
_MEMORY_GROWTH_KIB_MAX = 300 * 1024
_DIGITS = b"9" * 400
_DEEP = b"[" * 100_000
_BOMB = b"Z" + zlib.compress(b"\0" * 600_000_000, 9)[:950_000]

SHAPES: dict[str, bytes] = {
    "nothing": b"",
    "no text": b"\xff\xfe\x00" + CANARY.encode(),
    "another document": b'{"a": "' + CANARY.encode() + b'"}',
    "a list": b"[1, 2, 3]",
    "a number without end": b'{"position": ' + _DIGITS + b', "entry": ' + _DIGITS + b"}",
    "a number that is none": b'{"position": NaN, "entry": -1}',
    "true for one": b'{"position": true, "entry": true}',
    "brackets without end": _DEEP,
    "a megabyte": b"x" * 1_000_000,
    "a bomb": _BOMB,
    "an escape sequence": b"\x1b[2J" + CANARY.encode(),
    "an entry of nobody": b'P{"parts": [["' + CANARY.encode() + b'", [[1, "Noted", 2]]]]}\n{}',
    "lengths below zero": b'P{"parts": [["s", [[1, "Noted", -5]]]]}\n{}',
    "lengths beyond the end": b'P{"parts": [["s", [[1, "Noted", 999999999999]]]]}\n{}',
}


@pytest.fixture
def address(zookeeper: ZooKeeper) -> KeeperAddress:
    return address_on(zookeeper)


@pytest.fixture
def recorder(address: KeeperAddress) -> Iterator[KeeperRecorder]:
    with closing(made(address)) as recorder:
        yield recorder


@pytest.fixture
def ledger(recorder: KeeperRecorder) -> EventLedger:
    return EventLedger(recorder, CODEC, recorder.identity())


def _nodes(raw: Any, layout: Layout, stream: UUID) -> dict[str, str]:
    head = next(name for name in raw.get_children(layout.root) if name.startswith("head-"))
    return {
        "identity": layout.identity,
        "head": layout.head(head),
        "log": layout.log,
        "bucket": layout.bucket(1),
        "entry": layout.entry(2),
        "stream": layout.stream(stream.hex),
    }


def _uses(ledger: EventLedger, address: KeeperAddress, stream: UUID) -> list[Callable[[], object]]:
    return [
        lambda: ledger.read(stream),
        ledger.position,
        lambda: ledger.notifications(1, 100),
        lambda: verify_ledger(ledger),
        lambda: list(ledger.raw_rows()),
        lambda: list(ledger.streams()),
        lambda: ledger.append([noted(stream, 3, "c")]),
        lambda: open_store(address, None).close(),
    ]


def _try(use: Callable[[], object]) -> None:
    """Anything but an answer or the ledger's own error fails the test."""
    refused: LedgerFailed | None = None
    try:
        use()
    except LedgerFailed as error:
        refused = error
    if refused is None:
        return
    said = " ".join(map(str, (refused.what, refused.safe, refused.next, refused.errors, refused.known)))
    assert refused.code.value.startswith(("DPONE_LEDGER", "DPONE_REPLAY"))
    assert said.isprintable()
    assert CANARY not in said
    assert "127.0.0.1" not in said


def _bounded(work: Callable[[], None]) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    work()
    assert time.monotonic() - began < _SECONDS_MAX
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MEMORY_GROWTH_KIB_MAX


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("node", ["identity", "head", "log", "bucket", "entry", "stream"])
def test_a_node_of_another_shape_is_an_error_of_the_ledger(
    node: str, shape: str, ledger: EventLedger, address: KeeperAddress, raw: Any
) -> None:
    stream, layout = uuid4(), Layout(address.root)
    for version in range(3):
        ledger.append([noted(stream, version, "a")])
    path = _nodes(raw, layout, stream)[node]
    raw.set_acls(path, OPEN_ACL_UNSAFE)
    raw.set(path, SHAPES[shape])

    def use_all() -> None:
        for use in _uses(ledger, address, stream):
            _try(use)

    _bounded(use_all)
    if node == "entry":
        assert not verify_ledger(ledger).passed
        with pytest.raises(LedgerFailed) as caught:
            ledger.read(stream)
        assert caught.value.code in (ErrorCode.EVIDENCE_INVALID, ErrorCode.LEDGER_CORRUPT)


NAMES = ["x", CANARY, "-1", "9" * 300, "٣", "0000000002x", "00000000002", "1e3", "\u202e2"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["root", "log", "bucket", "stream", "streams", "streams of one bucket"])
def test_a_node_that_nobody_made_confuses_nobody(
    place: str, name: str, ledger: EventLedger, address: KeeperAddress, raw: Any
) -> None:
    stream, layout = uuid4(), Layout(address.root)
    for version in range(3):
        ledger.append([noted(stream, version, "a")])
    folder = {
        "root": layout.root,
        "log": layout.log,
        "bucket": layout.bucket(1),
        "stream": layout.stream(stream.hex),
        "streams": layout.streams,
        "streams of one bucket": layout.stream_bucket(stream.hex[:2]),
    }[place]
    raw.set_acls(folder, OPEN_ACL_UNSAFE)
    raw.create(f"{folder}/{name}", CANARY.encode())

    def use_all() -> None:
        for use in _uses(ledger, address, stream):
            _try(use)

    _bounded(use_all)
    kept = [] if place == "bucket" else ledger.read(stream)
    assert len(kept) in (0, 3, 4)


def test_events_under_another_chain_are_not_believed(ledger: EventLedger, address: KeeperAddress, raw: Any) -> None:
    """Whoever may write nodes can write an entry that is well-formed: its digests do not fit."""
    stream, layout = uuid4(), Layout(address.root)
    for version in range(3):
        ledger.append([noted(stream, version, "a")])
    path = layout.entry(2)
    header, _, states = raw.get(path)[0][1:].partition(b"\n")
    state = json.loads(states)
    state["data"] = {key: f"{value}x" if isinstance(value, str) else value for key, value in state["data"].items()}
    forged = json.dumps(state, separators=(",", ":"), sort_keys=True).encode()
    parts = json.loads(header)
    text = json.dumps(parts).replace(str(len(states)), str(len(forged)))
    raw.set_acls(path, OPEN_ACL_UNSAFE)
    raw.set(path, b"P" + text.encode() + b"\n" + forged)
    with pytest.raises(LedgerFailed) as caught:
        ledger.read(stream)
    assert caught.value.code is ErrorCode.EVIDENCE_INVALID
    assert not verify_ledger(ledger).passed


def test_a_ledger_without_rights_says_so(ledger: EventLedger, address: KeeperAddress, raw: Any) -> None:
    from kazoo.security import make_digest_acl

    layout = Layout(address.root)
    ledger.append([some()])
    for path in (layout.identity, layout.log):
        raw.set_acls(path, [make_digest_acl("other", "password", all=True)])
    for use in (lambda: ledger.append([some()]), ledger.position, lambda: open_store(address, None)):
        with pytest.raises(LedgerFailed) as caught:
            use()
        assert "does not allow" in caught.value.what
