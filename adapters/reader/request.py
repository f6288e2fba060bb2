"""What the parent hands to its worker: a typed plan, never SQL, in one length-prefixed frame."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ...domain.codec import decode, encode, parse_strict
from ...domain.ports import ReadPlan

LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """``budget_milliseconds`` is what is left of the parent's budget when the plan is handed over."""

    nonce: str
    folder: str
    budget_milliseconds: int
    plan: ReadPlan


def encode_request(request: ReadRequest) -> bytes:
    """The frame."""
    body = json.dumps(encode(request), ensure_ascii=False).encode()
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode_request(frame: bytes) -> ReadRequest:
    """Raises ValueError unless it is exactly one frame with every field and no other."""
    body = frame[LENGTH_BYTES:]
    if len(frame) < LENGTH_BYTES or int.from_bytes(frame[:LENGTH_BYTES], "big") != len(body):
        raise ValueError("not one frame")
    return decode(ReadRequest, parse_strict(body))
