"""Lost replies, late copies, servers that stop, freeze and come back, sessions that expire, forks: on a real ZooKeeper.

In every case one append is stored at most once, success is only said of what is stored, and every call ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from uuid import uuid4

import pytest
from kazoo.client import KazooClient

from dpone.domain.errors import AppendUnknown, ErrorCode, LedgerFailed
from dpone.ledger.keeper import KeeperRecorder, open_store
from dpone.ledger.keeper_url import KeeperUser, parse_address
from dpone.ledger.store import EventLedger
from dpone.ledger.verify import verify_ledger
from tests.faults.relay import Cut, Relay, relay_to
from tests.servers.processes import free_port
from tests.servers.zookeeper import ZooKeeper

from .contract import noted
from .events import CODEC, some
from .keeper_server import MOVED, address_on, freeze, is_transaction, made, own_zookeeper, wait_until

__all__ = ["own_zookeeper"]


def ledger_on(recorder: KeeperRecorder) -> EventLedger:
    return EventLedger(recorder, CODEC, recorder.identity())


def client_of(ledger: EventLedger) -> KazooClient:
    return ledger.recorder._session._client.kazoo  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------------ lost replies


@pytest.fixture
def relay(zookeeper: ZooKeeper) -> Iterator[Relay]:
    with relay_to(zookeeper.port) as relay:
        yield relay


def lose(relay: Relay, losses: Sequence[Cut]) -> None:
    """What becomes of the next transactions, one after another."""
    for loss in losses:
        relay.arm(loss, is_transaction)


@pytest.fixture
def behind(relay: Relay, zookeeper: ZooKeeper) -> Iterator[EventLedger]:
    """A ledger that is reached through the relay."""
    address = address_on(zookeeper)
    made(address).close()
    with ledger_on(open_store(parse_address(f"127.0.0.1:{relay.port}{address.root}"), None, wait_seconds=5)) as ledger:
        ledger.append([some()])
        yield ledger


@pytest.mark.parametrize(
    "losses",
    [(Cut.AFTER,), (Cut.BEFORE,), (Cut.LATE,), (Cut.BEFORE, Cut.AFTER), (Cut.LATE, Cut.AFTER)],
    ids=lambda losses: "+".join(loss.name.lower() for loss in losses),
)
def test_a_lost_reply_is_resolved_and_a_late_copy_changes_nothing(
    behind: EventLedger, relay: Relay, losses: tuple[Cut, ...]
) -> None:
    stream = uuid4()
    behind.append([noted(stream, 0, "a")])
    lose(relay, losses)
    behind.append([noted(stream, 1, "b", "c")])
    assert not relay.armed
    answers = relay.deliver_late()
    assert [MOVED in answer for answer in answers] == [True] * losses.count(Cut.LATE)
    assert [item.version for item in behind.read(stream)] == [1, 2, 3]
    behind.append([noted(stream, 3, "d")])
    assert behind.position() == 5
    assert verify_ledger(behind).passed


def test_a_copy_that_arrives_while_the_second_try_is_under_way_is_own_success(
    behind: EventLedger, relay: Relay
) -> None:
    stream = uuid4()
    lose(relay, (Cut.LATE,))
    recorder = behind.recorder
    insert = recorder.insert_events
    calls = []

    def delivering(*events: object, **rest: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            (answer,) = relay.deliver_late()
            assert MOVED not in answer
        return insert(*events, **rest)  # type: ignore[arg-type]

    recorder.insert_events = delivering  # type: ignore[method-assign, assignment]
    behind.append([noted(stream, 0, "a")])
    assert len(calls) == 2
    assert len(behind.read(stream)) == 1
    assert behind.position() == 2


def test_what_stays_unknown_says_so_and_a_successor_decides(behind: EventLedger, relay: Relay) -> None:
    stream = uuid4()
    lose(
        relay,
        (
            Cut.LATE,
            Cut.LATE,
        ),
    )
    with pytest.raises(AppendUnknown) as caught:
        behind.append([noted(stream, 0, "a")])
    assert caught.value.code is ErrorCode.LEDGER_UNREACHABLE
    behind.append([noted(stream, 0, "successor")])
    assert all(MOVED in answer for answer in relay.deliver_late())
    assert [item.event.text for item in behind.read(stream)] == ["successor"]  # type: ignore[attr-defined]
    assert verify_ledger(behind).passed


def test_a_lost_reply_while_the_ledger_is_made_makes_one(zookeeper: ZooKeeper, relay: Relay) -> None:
    for loss in (Cut.AFTER, Cut.BEFORE, Cut.LATE):
        address = address_on(zookeeper)
        lose(relay, (loss,))
        with closing(made(parse_address(f"127.0.0.1:{relay.port}{address.root}"))) as recorder:
            relay.deliver_late()
            with closing(open_store(address, None)) as again:
                assert again.identity() == recorder.identity()
            assert recorder.self_check() == []


def test_a_lost_reply_to_a_seal_seals(behind: EventLedger, relay: Relay) -> None:
    lose(relay, (Cut.BEFORE,))
    behind.recorder.seal()
    assert behind.recorder.identity().sealed


# -------------------------------------------------------------------------------------------- servers and sessions


def test_a_server_that_is_not_there_is_a_clear_error_within_the_bound(capfd: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    began = time.monotonic()
    for create in (False, True):
        with pytest.raises(LedgerFailed, match=r"did not answer within 0\.5 seconds") as caught:
            open_store(parse_address(f"127.0.0.1:{port}/dpone/ledger"), None, create=create, wait_seconds=0.5)
        assert caught.value.code is ErrorCode.LEDGER_UNREACHABLE
        assert str(port) not in f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    assert time.monotonic() - began < 6
    assert capfd.readouterr() == ("", "")


def test_a_restarted_server_is_found_again(own_zookeeper: ZooKeeper, capfd: pytest.CaptureFixture[str]) -> None:
    user = KeeperUser("dpone", "s3cr3t-c4n4ry-zk")
    stream = uuid4()
    with ledger_on(made(address_on(own_zookeeper), user)) as ledger:
        ledger.append([noted(stream, 0, "a")])
        own_zookeeper.kill()
        wait_until(lambda: not client_of(ledger).connected)
        own_zookeeper.start()
        ledger.append([noted(stream, 1, "b")])  # only its owner may: the credentials were given anew
        own_zookeeper.kill()
        own_zookeeper.start()
        assert [item.version for item in ledger.read(stream)] == [1, 2]
        assert verify_ledger(ledger).passed
    assert capfd.readouterr().err == ""


def test_a_frozen_server_is_a_clear_error_within_the_bound(own_zookeeper: ZooKeeper) -> None:
    stream = uuid4()
    with ledger_on(made(address_on(own_zookeeper), seconds=1.0)) as ledger:
        ledger.append([noted(stream, 0, "a")])
        freeze(own_zookeeper)
        before, began = ledger.recorder._session._client, time.monotonic()  # type: ignore[attr-defined]
        with pytest.raises(AppendUnknown) as caught:
            ledger.append([noted(stream, 1, "b")])
        assert caught.value.code is ErrorCode.LEDGER_UNREACHABLE
        # Thrown away with all that it had not sent yet.
        assert ledger.recorder._session._client is not before  # type: ignore[attr-defined]
        with pytest.raises(LedgerFailed, match="did not answer"):
            ledger.read(stream)
        assert time.monotonic() - began < 10
        own_zookeeper.thaw()
        own_zookeeper.wait_ready()
        found = len(ledger.read(stream))  # the frozen server may have had it in its buffer
        assert found in (1, 2)
        ledger.append([noted(stream, found, "c")])
        assert len(ledger.read(stream)) == found + 1
        assert verify_ledger(ledger).passed


def test_a_short_freeze_is_waited_for(own_zookeeper: ZooKeeper) -> None:
    with ledger_on(made(address_on(own_zookeeper))) as ledger:
        freeze(own_zookeeper)
        began = time.monotonic()
        os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", f"sleep 1; kill -CONT {own_zookeeper.process.pid}")  # type: ignore[union-attr]
        ledger.append([some()])
        assert 0.8 < time.monotonic() - began < 8
        assert ledger.position() == 1


def test_closing_does_not_wait_for_a_frozen_server(own_zookeeper: ZooKeeper) -> None:
    recorder = made(address_on(own_zookeeper))
    freeze(own_zookeeper)
    began = time.monotonic()
    recorder.close()
    recorder.close()
    assert time.monotonic() - began < 4
    with pytest.raises(LedgerFailed):
        recorder.identity()


def test_an_expired_session_is_replaced(zookeeper: ZooKeeper) -> None:
    """A thief ends the session that both have; now and then the owner takes it back first, and keeps it."""
    stream, version, replaced = uuid4(), 0, 0
    with ledger_on(made(address_on(zookeeper))) as ledger:
        while replaced < 4:
            assert version < 40
            before = client_of(ledger).client_id
            thief = KazooClient(zookeeper.hosts, client_id=before)
            thief.start()
            thief.stop()
            thief.close()
            ledger.append([noted(stream, version, "a")])
            version += 1
            replaced += client_of(ledger).client_id != before
        assert len(ledger.read(stream)) == version


def in_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_opens_its_own_session_and_leaves_the_parents_alone(zookeeper: ZooKeeper) -> None:
    stream = uuid4()
    with ledger_on(made(address_on(zookeeper), seconds=4.0)) as ledger:
        ledger.append([noted(stream, 0, "parent")])
        parents = client_of(ledger)

        def work() -> None:
            ledger.append([noted(stream, 1, "child")])
            ledger.close()

        assert in_child(work) == 0
        assert client_of(ledger) is parents
        assert [item.version for item in ledger.read(stream)] == [1, 2]
        ledger.append([noted(stream, 2, "parent")])
        assert parents.connected
