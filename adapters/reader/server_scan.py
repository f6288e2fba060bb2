"""The worker's work on servers: look at every replica, count on the first by name, look at every replica again.

Everything runs with ``readonly = 2`` and limits that throw. No count is ever added to another replica's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from ...domain.errors import DponeError, EngineFailed, ErrorCode
from ...domain.ports import ReadPlan
from ...domain.reply import Outcome, Reply
from ...domain.tables import Observation
from ..clickhouse import observation_sql
from ..clickhouse.quoting import literal
from ..cluster.abreast import abreast
from ..cluster.identity import read_identities
from ..cluster.session import Endpoint, ReplicaSession
from ..connections.connection import Connection
from . import replica_health
from .server_request import ServerRequest

CONNECT_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 10.0
"""A server that works reports progress all the time; a statement about metadata is over long before."""
PATIENCE_SECONDS: Final = 15.0
"""How long one look waits for a replica that is coming back, or taking up what is missing there.

One that was restarted is not active before its old session has expired, after some ten seconds.
"""
_POLL_SECONDS: Final = 0.1

_THROW: Final = ("read", "result", "timeout", "group_by", "sort", "distinct", "join", "set", "transfer")
_ALWAYS: Final[Mapping[str, int | str]] = {"readonly": 2, "timeout_overflow_mode": "throw"}
_PINNED: Final[Mapping[str, int | str]] = {
    "max_query_size": 16 * 1024 * 1024,
    "max_ast_elements": 1_000_000,
    "max_expanded_ast_elements": 1_000_000,
    "max_result_rows": 10_000,
    "max_parallel_replicas": 1,
    "select_sequential_consistency": 0,
    "final": 0,
    "apply_deleted_mask": 1,
    "use_query_cache": 0,
    # A profile's limit must fail the scan: "break" would end it early and call that a count.
    **{f"{kind}_overflow_mode": "throw" for kind in _THROW},
}
"""As far as the server has them: one of 2018 refuses a setting that it does not know."""

_OUTCOMES: Final[Mapping[int, Outcome]] = {
    60: Outcome.OTHER_TABLE,  # UNKNOWN_TABLE
    81: Outcome.OTHER_TABLE,  # UNKNOWN_DATABASE
    218: Outcome.OTHER_TABLE,  # TABLE_IS_DROPPED
    159: Outcome.TOO_SLOW,  # TIMEOUT_EXCEEDED
    160: Outcome.TOO_SLOW,  # TOO_SLOW, by the server's estimate
    observation_sql.SET_SIZE_LIMIT_EXCEEDED: Outcome.TOO_MANY_VALUES,
    164: Outcome.REFUSED,  # READONLY
    291: Outcome.REFUSED,  # DATABASE_ACCESS_DENIED
    392: Outcome.REFUSED,  # QUERY_IS_PROHIBITED
    452: Outcome.REFUSED,  # SETTING_CONSTRAINT_VIOLATION
    497: Outcome.REFUSED,  # ACCESS_DENIED
    225: Outcome.NO_KEEPER,  # NO_ZOOKEEPER
    999: Outcome.NO_KEEPER,  # KEEPER_EXCEPTION
}

Remaining = Callable[[], float]


class NotObserved(Exception):
    """Why there is no observation, and which replica stands in the way."""

    def __init__(self, outcome: Outcome, replica: str, engine_code: int | None = None) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
        self.replica = replica
        self.engine_code = engine_code


def observe(request: ServerRequest, deadline: float) -> Reply:
    """The one answer; every failure is an outcome. ``deadline`` is a monotonic second."""

    def remaining() -> float:
        return deadline - time.monotonic()

    try:
        connection = request.access.connection()
        _look_at_all(connection, request, remaining)
        observation = _count(connection, request.endpoints[0], request.plan, remaining)
        _look_at_all(connection, request, remaining)
    except NotObserved as error:
        return Reply(request.nonce, error.outcome, engine_code=error.engine_code, replica=error.replica)
    return Reply(request.nonce, Outcome.OBSERVED, observation)


def _look_at_all(connection: Connection, request: ServerRequest, remaining: Remaining) -> None:
    """At the same time: many replicas take no more of the budget than the slowest. Raises NotObserved."""

    def looked(endpoint: Endpoint) -> NotObserved | None:
        try:
            _look(connection, endpoint, request.plan, remaining)
        except NotObserved as error:
            return error
        return None

    found = abreast({endpoint.replica: partial(looked, endpoint) for endpoint in request.endpoints}).all()
    for endpoint in request.endpoints:
        if (problem := found[endpoint.replica]) is not None:
            raise problem


def _look(connection: Connection, endpoint: Endpoint, plan: ReadPlan, remaining: Remaining) -> None:
    """The expected table, replicated by a replica that is well and has everything. Raises NotObserved."""
    patience = time.monotonic() + PATIENCE_SECONDS
    with _failing(endpoint.replica, late=Outcome.UNREACHABLE), _opened(connection, endpoint, remaining) as query:
        identity = read_identities(query, plan.database, f"name = {literal(plan.table)}", query.session.dialect)
        if identity.get(plan.table) != plan.identities[endpoint.replica]:
            raise NotObserved(Outcome.OTHER_TABLE, endpoint.replica)
        while (problem := replica_health.problem(query, plan.database, plan.table)) is not None:
            if time.monotonic() >= patience:
                raise NotObserved(problem, endpoint.replica)
            time.sleep(_POLL_SECONDS)


def _count(connection: Connection, endpoint: Endpoint, plan: ReadPlan, remaining: Remaining) -> Observation:
    with _failing(endpoint.replica, late=Outcome.TOO_SLOW), _opened(connection, endpoint, remaining) as query:
        dialect = query.session.dialect
        return observation_sql.observe(query, plan.database, plan.table, plan.columns, plan.metrics, dialect)


class _Statements:
    """Runs statements on one replica, each within what is left of the budget when it is sent."""

    def __init__(self, session: ReplicaSession, remaining: Remaining) -> None:
        self.session = session
        self._remaining = remaining
        self._settings: dict[str, Any] = {}
        names = ", ".join(literal(name) for name in _PINNED)
        known = self(f"SELECT name FROM system.settings WHERE name IN ({names})")
        self._settings = {row["name"]: _PINNED[row["name"]] for row in known}

    def __call__(self, statement: str) -> observation_sql.Rows:
        seconds = int(self._remaining())  # an old server counts whole seconds, and takes zero for no limit
        if seconds < 1:
            raise _NoTimeLeft
        return self.session.query(statement, {**self._settings, **_ALWAYS, "max_execution_time": seconds})


@contextmanager
def _opened(connection: Connection, endpoint: Endpoint, remaining: Remaining) -> Iterator[_Statements]:
    left = remaining()
    if left <= 0:
        raise _NoTimeLeft
    with ReplicaSession.open(
        connection, endpoint, connect_seconds=min(CONNECT_SECONDS, left), reply_seconds=min(SILENCE_SECONDS, left)
    ) as session:
        yield _Statements(session, remaining)


class _NoTimeLeft(Exception):
    """The budget is spent."""


@contextmanager
def _failing(replica: str, *, late: Outcome) -> Iterator[None]:
    """Every failure as an outcome. ``late``: what it means that time ran out; a look that is late may go well later."""
    try:
        yield
    except _NoTimeLeft:
        raise NotObserved(late, replica) from None
    except observation_sql.ReplyMalformed:
        raise NotObserved(Outcome.ENGINE_ERROR, replica) from None
    except DponeError as error:
        code = error.engine_code if isinstance(error, EngineFailed) else None
        outcome = _outcome(error, code)
        raise NotObserved(late if outcome is Outcome.TOO_SLOW else outcome, replica, code) from None


def _outcome(error: DponeError, code: int | None) -> Outcome:
    if code is not None:
        return _OUTCOMES.get(code, Outcome.ENGINE_ERROR)
    match error.code:
        case ErrorCode.REPLICA_UNREACHABLE:
            return Outcome.UNREACHABLE
        case ErrorCode.CONNECTION_REFUSED:
            return Outcome.REFUSED
        case _:
            return Outcome.ENGINE_ERROR
