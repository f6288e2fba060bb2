"""What a reader's worker may answer: one frame, strictly read.

A frame is four bytes of length (big-endian) and that many bytes of JSON, then the end of the channel. Anything else,
be it one byte more, a key twice or a field too many, is no observation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .codec import DecodeError, decode, encode, parse_strict
from .limits import COUNT_MAX, READER_FRAME_BYTES_MAX
from .tables import Column, Metrics, Observation

LENGTH_BYTES = 4
NONCE_CHARACTERS = 32
_HASH = re.compile(r"v1:(0|[1-9][0-9]{0,15}):(0|[1-9][0-9]{0,19})")


class Outcome(StrEnum):
    """How the worker ended. Everything but OBSERVED comes without an observation."""

    OBSERVED = "observed"
    BUSY = "busy"  # the folder's lock was not to be had in time
    OTHER_TABLE = "other_table"  # no table of that name and identity, before or after the scan
    TOO_SLOW = "too_slow"  # the scan did not end within its share of the budget
    TOO_MANY_VALUES = "too_many_values"  # more distinct values than an exact count may hold
    UNREACHABLE = "unreachable"  # a replica does not answer, or not in time
    REFUSED = "refused"  # a replica does not let this user in, or not run what a reader runs
    READ_ONLY = "read_only"  # a replica has stopped replicating the table
    NO_KEEPER = "no_keeper"  # a replica has no living session with the Keeper
    BEHIND = "behind"  # a replica does not hold all rows yet, or may miss a part
    ENGINE_ERROR = "engine_error"

    @property
    def fits(self) -> bool:
        """Whether another attempt could do better."""
        return self not in (Outcome.TOO_SLOW, Outcome.TOO_MANY_VALUES)


@dataclass(frozen=True, slots=True)
class Reply:
    """One worker's answer to the plan that carried ``nonce``. ``engine_code`` is ClickHouse's, where it gave one.

    ``replica`` is the one that stood in the way, where it was one of several.
    """

    nonce: str
    outcome: Outcome
    observation: Observation | None = None
    engine_code: int | None = None
    replica: str | None = None


class ReplyInvalid(ValueError):
    """The bytes are not exactly one well-formed reply to this plan."""


def encode_reply(reply: Reply) -> bytes:
    """The frame. Raises ReplyInvalid when it would be larger than READER_FRAME_BYTES_MAX."""
    body = _body(reply)
    if LENGTH_BYTES + len(body) > READER_FRAME_BYTES_MAX:
        raise ReplyInvalid("the reply is larger than a frame may be")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode_reply(frame: bytes, nonce: str, metrics: Metrics, replicas: Collection[str] = ()) -> Reply:
    """Read everything that came through the channel until its end. Raises ReplyInvalid.

    ``replicas`` are those that the plan asks about, and the only ones that a reply may name.
    """
    if not frame:
        raise ReplyInvalid("the worker said nothing")
    if len(frame) > READER_FRAME_BYTES_MAX:
        raise ReplyInvalid("the reply is larger than a frame may be")
    body = frame[LENGTH_BYTES:]
    if len(frame) < LENGTH_BYTES or int.from_bytes(frame[:LENGTH_BYTES], "big") != len(body):
        raise ReplyInvalid("the reply is cut short, or more than one frame")
    try:
        reply = decode(Reply, parse_strict(body))
    except (DecodeError, ValueError) as error:
        raise ReplyInvalid("the reply is not of the agreed form") from error
    if reply.nonce != nonce:
        raise ReplyInvalid("the reply belongs to another plan")
    if reply.replica is not None and reply.replica not in replicas:
        raise ReplyInvalid("the reply names a replica that the plan does not")
    if problem := _problem(reply, metrics):
        raise ReplyInvalid(problem)
    return reply


def reply_bytes_max(columns: Sequence[Column], metrics: Metrics) -> int:
    """The largest frame that an observation of these metrics can take, in bytes. Raises ValueError: unknown column."""
    known = {column.name for column in columns}
    if unknown := {*metrics.null_counts, *metrics.distinct_counts} - known:
        raise ValueError(f"not a column: {', '.join(sorted(unknown))}")
    from .capsule import largest_observation  # the worker, which never asks this, starts faster without it

    reply = Reply("0" * NONCE_CHARACTERS, Outcome.OBSERVED, largest_observation(metrics))
    return LENGTH_BYTES + len(_body(reply))


def _body(reply: Reply) -> bytes:
    return json.dumps(encode(reply), ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _problem(reply: Reply, metrics: Metrics) -> str | None:
    seen = reply.observation
    if (seen is not None) != (reply.outcome is Outcome.OBSERVED):
        return "the reply's outcome and its observation contradict each other"
    if seen is None:
        return None
    if reply.replica is not None:
        return "the reply observed everything and names a replica that stood in the way"
    if set(seen.null_counts) != set(metrics.null_counts) or set(seen.distinct_counts) != set(metrics.distinct_counts):
        return "the reply does not hold exactly the counts that were asked for"
    counts = (seen.row_count, *seen.null_counts.values(), *seen.distinct_counts.values())
    if not all(0 <= count <= COUNT_MAX for count in counts):
        return "the reply holds a count out of range"
    if any(count > seen.row_count for count in (*seen.null_counts.values(), *seen.distinct_counts.values())):
        return "the reply counts more NULLs or values than rows"
    return _hash_problem(seen, metrics)


def _hash_problem(seen: Observation, metrics: Metrics) -> str | None:
    if (seen.typed_hash is not None) != metrics.typed_hash:
        return "the reply does not hold exactly the hash that was asked for"
    if seen.typed_hash is None:
        return None
    match = _HASH.fullmatch(seen.typed_hash)
    if match is None or int(match[1]) != seen.row_count or int(match[2]) >= 2**64:
        return "the reply's hash is not of the agreed form"
    return None
