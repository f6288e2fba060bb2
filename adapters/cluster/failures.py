"""What can go wrong between this process and one replica, as errors for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...domain.errors import DponeError, EngineFailed, ErrorCode
from ...domain.limits import DISTINCT_VALUES_MAX
from ..clickhouse.observation_sql import SET_SIZE_LIMIT_EXCEEDED, ReplyMalformed
from ..connections.clickhouse import error_name

_LEFT = "Everything was left in place."
_REPEAT = "Repeat the same command."
_DENIED = (164, 291, 392, 497)
"""READONLY, DATABASE_ACCESS_DENIED, QUERY_IS_PROHIBITED, ACCESS_DENIED."""
_NOT_ENOUGH_SPACE = 243
_TIMEOUT_EXCEEDED = 159


def unreachable(replica: str, how: str = "cannot be reached") -> EngineFailed:
    """No server answers there, or the connection broke."""
    return EngineFailed(
        ErrorCode.REPLICA_UNREACHABLE,
        f"Replica {replica} {how}.",
        safe=_LEFT,
        next="Check that its server runs, then repeat the same command.",
    )


def silent(replica: str) -> EngineFailed:
    """It did not answer within the bound; what was asked may still be carried out."""
    return unreachable(replica, "did not answer within the bound")


def refused_to_connect(replica: str, error: DponeError) -> EngineFailed:
    """The server is there and did not let us in, or the connection's settings cannot be meant."""
    return EngineFailed(error.code, f"Replica {replica}: {error.what}", safe=_LEFT, next=error.next)


def refused_by_server(replica: str, code: int) -> EngineFailed:
    """The server answered with an error: its number and name, for its text may quote a value."""
    name = error_name(code)
    if code in _DENIED:
        return EngineFailed(
            ErrorCode.CONNECTION_REFUSED,
            f"Replica {replica} does not allow a statement to this user ({name}).",
            engine_code=code,
            safe=_LEFT,
            next="Grant the user what the guide for platform owners lists, then repeat the same command.",
        )
    if code == _NOT_ENOUGH_SPACE:
        return EngineFailed(
            ErrorCode.STORAGE_FULL,
            f"Replica {replica} has too little disk space ({name}).",
            engine_code=code,
            safe=_LEFT,
            next="Free space there, then repeat the same command.",
        )
    late = code == _TIMEOUT_EXCEEDED
    return EngineFailed(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"Replica {replica} refused a statement ({name}).",
        engine_code=code,
        safe=_LEFT,
        next=_REPEAT if late else "Look at that server's log, then repeat the same command.",
        cause=ErrorCode.PUBLICATION_UNKNOWN if late else None,
    )


@contextmanager
def of_the_cluster() -> Iterator[None]:
    """A failed statement of the cluster: the server that answers speaks of any of the replicas."""
    try:
        yield
    except EngineFailed as error:
        if error.engine_code is None:
            raise
        if error.engine_code == _TIMEOUT_EXCEEDED:
            raise EngineFailed(
                ErrorCode.REPLICA_UNREACHABLE,
                "Not every replica carried out a statement of the cluster within the bound; a late one still may.",
                engine_code=error.engine_code,
                safe=_LEFT,
                next="Check that every server of the cluster runs, then repeat the same command.",
            ) from None
        raise EngineFailed(
            error.code,
            f"A statement of the cluster failed on a replica ({error_name(error.engine_code)}).",
            engine_code=error.engine_code,
            safe=error.safe,
            next=error.next,
        ) from None


@contextmanager
def observation_failed(replica: str) -> Iterator[None]:
    """What counting may run into besides a lost connection."""
    try:
        yield
    except ReplyMalformed as error:
        raise EngineFailed(ErrorCode.EVIDENCE_INCOMPLETE, f"Replica {replica}: {error}", next=_REPEAT) from None
    except EngineFailed as error:
        if error.engine_code != SET_SIZE_LIMIT_EXCEEDED:
            raise
        raise EngineFailed(
            ErrorCode.EVIDENCE_UNSUPPORTED,
            f"A column has more than {DISTINCT_VALUES_MAX:,} distinct values, more than an exact count may hold in "
            "memory.",
            engine_code=error.engine_code,
            safe="Counting changes nothing.",
            next="Take the column out of distinct_counts, then repeat the same command.",
        ) from None
