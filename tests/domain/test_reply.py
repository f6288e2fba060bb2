"""One frame of exactly the agreed form, or no observation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpone.domain.limits import COUNT_MAX, METRIC_COLUMNS_MAX, READER_FRAME_BYTES_MAX
from dpone.domain.reply import Outcome, Reply, ReplyInvalid, decode_reply, encode_reply, reply_bytes_max
from dpone.domain.tables import Column, Metrics, Observation

NONCE = "ab" * 16
METRICS = Metrics(("a",), ("a", "é"), typed_hash=True)
SEEN = Observation(3, {"a": 1}, {"a": 2, "é": 3}, "v1:3:18446744073709551615")
REPLY = Reply(NONCE, Outcome.OBSERVED, SEEN)


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def _changed(**fields: Any) -> bytes:
    data = json.loads(encode_reply(REPLY)[4:])
    observation = {**data["observation"], **fields.pop("observation", {})}
    return _frame(json.dumps({**data, "observation": observation, **fields}).encode())


def test_what_was_encoded_is_read_back() -> None:
    assert decode_reply(encode_reply(REPLY), NONCE, METRICS) == REPLY
    refusal = Reply(NONCE, Outcome.TOO_SLOW, engine_code=159)
    assert decode_reply(encode_reply(refusal), NONCE, METRICS) == refusal
    assert decode_reply(_changed(), NONCE, METRICS) == REPLY


def test_a_replica_is_named_only_if_the_plan_asks_about_it() -> None:
    late = Reply(NONCE, Outcome.UNREACHABLE, replica="replica_2")
    assert decode_reply(encode_reply(late), NONCE, METRICS, ("replica_1", "replica_2")) == late
    for known in ((), ("replica_1",)):
        with pytest.raises(ReplyInvalid):
            decode_reply(encode_reply(late), NONCE, METRICS, known)
    with pytest.raises(ReplyInvalid):
        decode_reply(_changed(replica="replica_2"), NONCE, METRICS, ("replica_2",))


def test_zero_rows_are_a_result() -> None:
    zero = Reply(NONCE, Outcome.OBSERVED, Observation(0, {"a": 0}, {"a": 0, "é": 0}, "v1:0:0"))
    assert decode_reply(encode_reply(zero), NONCE, METRICS) == zero


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\0\0",
        encode_reply(REPLY) + b"\n",
        encode_reply(REPLY)[:-1],
        encode_reply(REPLY) * 2,
        _frame(b""),
        _frame(b"{}"),
        _frame(b"[]"),
        _frame(b"\xff"),
        _frame(b"[" * 50_000),
        _frame(b"9" * 5000),
        _frame(b" " * READER_FRAME_BYTES_MAX),
        _frame(encode_reply(REPLY)[4:-1] + b',"nonce":"' + NONCE.encode() + b'"}'),
        _changed(nonce="cd" * 16),
        _changed(more=1),
        _changed(outcome="done"),
        _changed(outcome="busy"),
        _changed(engine_code=True),
        _changed(observation={"row_count": True}),
        _changed(observation={"row_count": 3.0}),
        _changed(observation={"row_count": -1}),
        _changed(observation={"row_count": float("nan")}),
        _changed(observation={"row_count": COUNT_MAX + 1}),
        _changed(observation={"row_count": 4}),
        _changed(observation={"null_counts": {}}),
        _changed(observation={"null_counts": {"a": False}}),
        _changed(observation={"null_counts": {"a": 4}}),
        _changed(observation={"null_counts": {"a": None}}),
        _changed(observation={"distinct_counts": {"a": 2, "é": 3, "b": 0}}),
        _changed(observation={"typed_hash": None}),
        _changed(observation={"typed_hash": "v1:3:18446744073709551616"}),
        _changed(observation={"typed_hash": "v1:03:1"}),
        _changed(observation={"typed_hash": "v1:3:1\n"}),
    ],
)
def test_everything_else_is_refused(frame: bytes) -> None:
    with pytest.raises(ReplyInvalid):
        decode_reply(frame, NONCE, METRICS)


def test_a_hash_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(ReplyInvalid):
        decode_reply(encode_reply(REPLY), NONCE, Metrics(("a",), ("a", "é")))


def test_the_largest_reply_is_known_beforehand() -> None:
    columns = (Column("a", "Int8"), Column("é", "Int8"))
    largest = Observation(COUNT_MAX, {"a": COUNT_MAX}, {"a": COUNT_MAX, "é": COUNT_MAX}, f"v1:{COUNT_MAX}:{2**64 - 1}")
    assert reply_bytes_max(columns, METRICS) == len(encode_reply(Reply(NONCE, Outcome.OBSERVED, largest)))
    assert reply_bytes_max(columns, METRICS) >= len(encode_reply(REPLY))
    with pytest.raises(ValueError, match="not a column: z"):
        reply_bytes_max(columns, Metrics(("z",)))


def test_the_most_metrics_with_long_names_can_be_too_large() -> None:
    names = tuple(f"{i:03}" + "n" * 600 for i in range(METRIC_COLUMNS_MAX))
    columns = tuple(Column(name, "Int8") for name in names)
    assert reply_bytes_max(columns, Metrics(names, names)) > READER_FRAME_BYTES_MAX
    with pytest.raises(ReplyInvalid):
        encode_reply(Reply(NONCE, Outcome.OBSERVED, Observation(1, dict.fromkeys(names, 1), dict.fromkeys(names, 1))))
