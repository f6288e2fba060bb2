"""Bounded calls to Keeper through kazoo; the only module that knows it.

A client is used until it sees trouble and then thrown away: kazoo keeps what it could not send and would send it after
it has connected again, long after the caller was told that the outcome is unknown. Every call ends within its bound,
also on a frozen server and in a forked process, where kazoo's own threads are missing and it would wait for ever.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import methodcaller
from threading import Event, Lock, Thread
from typing import Any, Final

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.security import ACL, ANYONE_ID_UNSAFE, Id, Permissions, make_digest_acl_credential

from ..domain.errors import LedgerFailed
from .keeper_faults import not_allowed, reply_lost, unreachable, unwilling
from .keeper_url import KeeperAddress, KeeperUser
from .recorder import ReplyLost

_WAVE: Final = 64  # requests under way at once: a wave of the largest entries stays below 60 MB
_FAREWELL_SECONDS: Final = 1.0
_RETRY: Final = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5}

# kazoo logs endpoints, and at debug level credentials; everything worth saying is in the error that is raised.
_SILENT = logging.getLogger("dpone.ledger.keeper.client")
_SILENT.disabled = True


class Rights(Enum):
    """What may be done to a node. Every set ends with ADMIN, so that an operator can undo it, except SEALED."""

    ENTRY = 1 | 16
    BUCKET = 1 | 4 | 16
    RECORD = 1 | 2 | 16
    STREAM = 1 | 2 | 4 | 16
    PARENT = 31
    SEALED = 1


@dataclass(frozen=True, slots=True)
class Node:
    """A node's bytes and the version by which a change to it is checked."""

    data: bytes = field(repr=False)
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Nothing changes unless the node has this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Change:
    """New bytes for a node that has this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """A new node."""

    path: str
    data: bytes
    rights: Rights


Operation = Check | Change | Create


class Reason(Enum):
    """Why nothing of a transaction was done."""

    MOVED = auto()
    TAKEN = auto()
    ABSENT = auto()
    NOT_ALLOWED = auto()


_REASONS: Final = (
    (BadVersionError, Reason.MOVED),
    (NodeExistsError, Reason.TAKEN),
    (NoNodeError, Reason.ABSENT),
    (NoAuthError, Reason.NOT_ALLOWED),
)


class Deadline:
    """The end of one call's patience."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds, never below a hundredth: a wait of nothing would not even see an answer that is there."""
        return max(0.01, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._end


class Session:
    """Calls to one Keeper, each bounded by ``wait_seconds``."""

    def __init__(self, address: KeeperAddress, user: KeeperUser | None, wait_seconds: float) -> None:
        self.name = address.name
        self.wait_seconds = wait_seconds
        self._address = address
        self._user = user
        self._who = Id("digest", make_digest_acl_credential(user.name, user.password)) if user else ANYONE_ID_UNSAFE
        self._owner = self._who
        self._lock = Lock()
        self._client: _Client | None = None
        self._closed = False

    def deadline(self) -> Deadline:
        return Deadline(self.wait_seconds)

    def read(self, paths: Sequence[str]) -> list[Node | None]:
        """The nodes at ``paths`` as they are now, None where there is none.

        The server is first made to catch up with its leader, so an answer is never older than the call. Raises
        LedgerFailed.
        """
        found = self._ask([methodcaller("get_async", path) for path in paths])
        return [None if isinstance(answer, NoNodeError) else Node(answer[0], answer[1].version) for answer in found]

    def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The sorted names of the nodes below ``paths``, None where there is no such node. Raises LedgerFailed."""
        asked = [lambda client, path=path: client.get_children_async(path) for path in paths]
        return [None if isinstance(answer, NoNodeError) else sorted(answer) for answer in self._ask(asked)]

    def rights(self, paths: Sequence[str]) -> list[Rights | None]:
        """What this ledger's user may do to nodes; None where a node is absent or others may do something too."""
        found = self._ask([methodcaller("get_acls_async", path) for path in paths])
        return [None if isinstance(answer, NoNodeError) else self._rights_of(answer[0]) for answer in found]

    def create_as(self, path: str) -> None:
        """From now on leave new nodes to everybody where the node at ``path`` is everybody's: one user's run must not
        lock the others out of a ledger that was made without credentials. Raises LedgerFailed."""
        if self._user is None:
            return
        (found,) = self._ask([lambda client: client.get_acls_async(path)])
        if not isinstance(found, NoNodeError) and [entry.id for entry in found[0]] == [ANYONE_ID_UNSAFE]:
            self._owner = ANYONE_ID_UNSAFE

    def restrict(self, path: str, rights: Rights) -> None:
        """Give a node other rights. Repeating it is harmless. Raises LedgerFailed."""
        self._ask([lambda client: client.set_acls_async(path, self._acl(rights))])

    def commit(self, operations: Sequence[Operation], deadline: Deadline) -> tuple[int, Reason] | None:
        """Do all of it or nothing. Returns None when it was done, else which operation was refused, and why.

        Raises LedgerFailed when nothing was sent, and ReplyLost when nobody knows.
        """
        client = self._connected(deadline)
        transaction = TransactionRequest(client.kazoo)
        for operation in operations:
            self._add(transaction, operation)
        try:
            results = transaction.commit_async().get(timeout=deadline.left)
        except Exception as error:  # kazoo hands on whatever went wrong while it read a reply
            self._drop(client)
            raise ReplyLost from _told(reply_lost(self.name), error)
        for place, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(result, (RolledBackError, RuntimeInconsistency)):
                return place, self._reason(result)
        return None

    def close(self) -> None:
        """End the session. Idempotent, and bounded."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            client.end(politely=True)

    # ------------------------------------------------------------------------------------------------- requests

    def _ask(self, requests: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Answers, in order; a node that is not there is an answer too. Asks again when the connection broke."""
        deadline = self.deadline()
        answers: list[Any] = []
        while len(answers) < len(requests):
            client = self._connected(deadline)
            try:
                answers += client.wave(requests[len(answers) : len(answers) + _WAVE], self._address.root, deadline)
            except NoAuthError as error:
                raise not_allowed(self.name) from error
            except Exception as error:  # kazoo hands on whatever went wrong while it read a reply
                self._drop(client)
                if deadline.over:
                    raise unreachable(self.name, self.wait_seconds) from error
                continue
            deadline = self.deadline()  # each wave has its own: a long history is no silence
        return answers

    def _add(self, transaction: Any, operation: Operation) -> None:
        match operation:
            case Check(path, version):
                transaction.check(path, version)
            case Change(path, data, version):
                transaction.set_data(path, data, version)
            case Create(path, data, rights):
                transaction.create(path, data, acl=self._acl(rights))

    def _reason(self, error: Exception) -> Reason:
        for kind, reason in _REASONS:
            if isinstance(error, kind):
                return reason
        raise unwilling(self.name) from error

    def _acl(self, rights: Rights) -> list[Any]:
        """A root and the folders above it hold no data and may be looked at: a ClickHouse server that lists what lies
        beside them in ``system.zookeeper``, as it does for every look at its own Keeper, fails at one that it may not
        read."""
        own = ACL(rights.value, self._owner)
        if rights is not Rights.PARENT or self._owner == ANYONE_ID_UNSAFE:
            return [own]
        return [own, ACL(Permissions.READ, ANYONE_ID_UNSAFE)]

    def _rights_of(self, acl: Sequence[Any]) -> Rights | None:
        if len(acl) != 1 or tuple(acl[0].id) != tuple(self._who):
            return None
        with suppress(ValueError):
            return Rights(acl[0].perms)
        return None

    # ---------------------------------------------------------------------------------------------- connections

    def _connected(self, deadline: Deadline) -> _Client:
        if not self._lock.acquire(timeout=deadline.left):
            raise unreachable(self.name, self.wait_seconds)
        try:
            client = self._client
            if client is not None and client.process != os.getpid():
                client = self._client = None  # a fork: its threads are not here, and its socket is the parent's
            if client is not None and client.kazoo.connected:
                return client
            if client is not None:
                client.end(politely=False)
            self._client = self._opened(deadline)
            return self._client
        finally:
            self._lock.release()

    def _opened(self, deadline: Deadline) -> _Client:
        if self._closed:
            raise unreachable(self.name, self.wait_seconds)
        client = _Client(self._address, self._user, self.wait_seconds)
        if client.start(deadline):
            return client
        refused = client.kazoo.client_state == KeeperState.AUTH_FAILED
        client.end(politely=False)
        raise not_allowed(self.name) if refused else unreachable(self.name, self.wait_seconds)

    def _drop(self, client: _Client) -> None:
        with self._lock:
            if self._client is client:
                self._client = None
        client.end(politely=False)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads, and a way to cut its connection: it would otherwise wait for a frozen server's farewell."""

    def __init__(self) -> None:
        super().__init__()
        self._sockets: list[socket.socket] = []
        self._cut = Event()

    def spawn(self, work: Callable[..., Any], *args: Any, **options: Any) -> Thread:
        """kazoo's loop dies of a reply that is none, and a thread's last words go to stderr: nobody is to read those.

        Who waits for an answer waits to the end of the bound, and the client is thrown away.
        """

        def silenced() -> None:
            with suppress(Exception):
                work(*args, **options)

        thread: Thread = super().spawn(silenced)
        return thread

    def create_connection(self, *args: Any, **options: Any) -> socket.socket:
        if self._cut.is_set():
            raise OSError("cut")
        made: socket.socket = super().create_connection(*args, **options)
        self._sockets = [made]
        if self._cut.is_set():
            made.close()
        return made

    def cut(self) -> None:
        self._cut.set()
        for made in self._sockets:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)


class _Client:
    """One kazoo client of this process."""

    def __init__(self, address: KeeperAddress, user: KeeperUser | None, seconds: float) -> None:
        self.process = os.getpid()
        self._handler = _Handler()
        self.kazoo = KazooClient(
            hosts=address.hosts,
            timeout=seconds,
            handler=self._handler,
            auth_data=[("digest", f"{user.name}:{user.password}")] if user else None,
            connection_retry=dict(_RETRY),
            logger=_SILENT,
        )

    def start(self, deadline: Deadline) -> bool:
        ready = self.kazoo.start_async()
        while not deadline.over and self.kazoo.client_state != KeeperState.AUTH_FAILED:
            if ready.wait(min(0.2, deadline.left)):
                return True
        return False

    def wave(self, requests: Sequence[Callable[[Any], Any]], root: str, deadline: Deadline) -> list[Any]:
        """Send all, then wait for all. Raises kazoo's exceptions, except that a missing node is an answer."""
        caught_up = self.kazoo.sync_async(root)
        under_way = [request(self.kazoo) for request in requests]
        caught_up.get(timeout=deadline.left)
        return list(self._answers(under_way, deadline))

    def end(self, *, politely: bool) -> None:
        """Let go of it: kazoo's own farewell waits for the server, so it happens aside, and nothing is sent after."""
        if not politely:
            self._handler.cut()
        farewell = Thread(target=self._stop, daemon=True)
        farewell.start()
        if politely:
            farewell.join(_FAREWELL_SECONDS)
            self._handler.cut()

    def _stop(self) -> None:
        with suppress(Exception):  # whatever kazoo says now, nobody uses this client any more
            self.kazoo.stop()
            self.kazoo.close()

    def _answers(self, under_way: Sequence[Any], deadline: Deadline) -> Iterator[Any]:
        for request in under_way:
            try:
                yield request.get(timeout=deadline.left)
            except NoNodeError as absent:
                yield absent
            except AuthFailedError as error:
                raise NoAuthError from error


def _told(failure: LedgerFailed, error: Exception) -> LedgerFailed:
    failure.__cause__ = error
    return failure
