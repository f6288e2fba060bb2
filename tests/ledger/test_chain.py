"""The hash chain on its bytes: canonical, sealed to stream, version, topic and predecessor."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from dpone.ledger.chain import GENESIS, ChainBroken, canonical, check_previous, seal, unseal

STREAM = UUID("7f3a91c2-0000-4000-8000-000000000001")
APPEND = "0123456789abcdef" * 2
DATA = {"b": [1, None, True], "a": 'é\u0007"\\', "c": {}}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(json_values)
def test_the_fast_encoder_gives_the_canonical_bytes(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53, 2.0**53, 1e20, {"a": -(2**53)}, {1: "a"}, "\ud800", {"\ud800": 1}]
)
def test_what_json_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        canonical(value)


def test_the_digest_is_what_the_format_says() -> None:
    state, digest = seal(STREAM, 3, "Noted", DATA, "f" * 64, APPEND)
    envelope = {"append_id": APPEND, "data": DATA, "previous": "f" * 64}
    assert state == rfc8785.dumps({**envelope, "digest": digest})  # type: ignore[dict-item]
    sealed = {**envelope, "stream": str(STREAM), "topic": "Noted", "version": 3}
    assert digest == hashlib.sha256(rfc8785.dumps(sealed)).hexdigest()  # type: ignore[arg-type]


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values, max_size=4))
def test_what_was_sealed_is_read_back(data: dict[str, Any]) -> None:
    state, digest = seal(STREAM, 1, "Noted", data, GENESIS, APPEND)
    link = unseal(STREAM, 1, "Noted", state)
    assert (link.digest, link.previous, link.append_id) == (digest, GENESIS, APPEND)
    assert canonical(link.data) == canonical(data)


@pytest.mark.parametrize(
    ("stream", "version", "topic"),
    [(UUID(int=1), 1, "Noted"), (STREAM, 2, "Noted"), (STREAM, 1, "noted"), (STREAM, 1, "Not\udcffd")],
)
def test_another_place_breaks_the_digest(stream: UUID, version: int, topic: str) -> None:
    state, _ = seal(STREAM, 1, "Noted", DATA, GENESIS, APPEND)
    with pytest.raises(ChainBroken):
        unseal(stream, version, topic, state)


def test_the_link_to_the_event_before_is_checked() -> None:
    first_state, first = seal(STREAM, 1, "Noted", DATA, GENESIS, APPEND)
    second, _ = seal(STREAM, 2, "Noted", DATA, first, APPEND)
    check_previous(unseal(STREAM, 1, "Noted", first_state), GENESIS)
    check_previous(unseal(STREAM, 2, "Noted", second), first)
    with pytest.raises(ChainBroken, match="does not continue"):
        check_previous(unseal(STREAM, 2, "Noted", second), "0" * 64)


def _spelled(state: bytes) -> dict[str, bytes]:
    fields = json.loads(state)
    return {
        "spaces": json.dumps(fields).encode(),
        "order": json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode(),
        "escapes": state.replace(b'"c"', b'"\\u0063"'),
        "number": state.replace(b"[1,", b"[1.0,"),
        "duplicate": state.replace(b'"c":{}', b'"c":{},"c":{}'),
        "nan": state.replace(b"[1,", b"[NaN,"),
        "huge": state.replace(b"[1,", b"[" + b"9" * 5000 + b","),
        "deep": state.replace(b"[1,", b"[" * 100_000),
        "not UTF-8": state.replace(b'"c"', b'"\xff"'),
        "surrogate": state.replace(b'"c"', b'"\\ud800"'),
        "extra": state[:-1] + b',"z":1}',
        "missing": rfc8785.dumps({key: fields[key] for key in ("append_id", "data", "digest")}),
        "data is a list": state.replace(state[state.index(b'"data":') + 7 : state.index(b',"digest"')], b"[]"),
        "no object": b"[]",
        "empty": b"",
        "newline": state + b"\n",
        "upper case": state.replace(fields["digest"].encode(), fields["digest"].upper().encode()),
        "append id": state.replace(APPEND.encode(), b"x" * 32),
        "null previous": state.replace(b'"previous":""', b'"previous":null'),
    }


@pytest.mark.parametrize("spelling", sorted(_spelled(seal(STREAM, 1, "Noted", DATA, GENESIS, APPEND)[0])))
def test_any_other_spelling_is_refused_without_quoting_it(spelling: str) -> None:
    state, _ = seal(STREAM, 1, "Noted", DATA, GENESIS, APPEND)
    spelled = _spelled(state)[spelling]
    assert spelled != state
    with pytest.raises(ChainBroken) as caught:
        unseal(STREAM, 1, "Noted", spelled)
    assert APPEND[:8] not in str(caught.value)


def test_text_in_place_of_bytes_is_refused() -> None:
    state, _ = seal(STREAM, 1, "Noted", DATA, GENESIS, APPEND)
    with pytest.raises(ChainBroken):
        unseal(STREAM, 1, "Noted", state.decode())  # type: ignore[arg-type]
