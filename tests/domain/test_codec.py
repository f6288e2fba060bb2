"""Every event survives its stored form, and nothing else becomes an event."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from typing import Any, Union

import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone.domain.codec import DecodeError, decode, encode, parse_strict
from dpone.domain.event_table import EVENT_TYPES, TOPICS, event_from_data, event_to_data
from dpone.domain.events import Event, Role
from dpone.domain.limits import COUNT_MAX
from dpone.domain.tables import Metrics, Observation

from . import examples as x
from .every_event import one_of_every_event

TEXT = st.text(max_size=12)
NUMBER = st.integers(-COUNT_MAX, COUNT_MAX)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type, read from the annotations as the codec reads them."""
    if kind is Any:
        return JSON
    if isinstance(kind, type) and is_dataclass(kind):
        return st.builds(kind, **{name: values(hint) for name, hint in typing.get_type_hints(kind).items()})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if option is type(None) else values(option) for option in arguments))
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, values(arguments[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    return {str: TEXT, int: NUMBER, bool: st.booleans()}[kind]


def test_a_tuple_is_a_list_whatever_python_takes_for_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import in another thread can leave ``isinstance((), Mapping)`` true for good."""
    monkeypatch.setattr("dpone.domain.codec.Mapping", (Mapping, tuple, list, str))
    assert encode({"a": ("b", ["c"])}) == {"a": ["b", ["c"]]}


@pytest.mark.parametrize("topic", TOPICS.values())
def test_every_event_survives_its_stored_form(topic: str) -> None:
    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(values(EVENT_TYPES[topic]))
    def survives(event: Event) -> None:
        stored = rfc8785.dumps(event_to_data(event))
        assert event_from_data(topic, parse_strict(stored)) == event
        assert rfc8785.dumps(event_to_data(event_from_data(topic, parse_strict(stored)))) == stored

    survives()


@pytest.mark.parametrize("event", one_of_every_event(), ids=lambda event: type(event).__name__)
def test_a_field_more_or_less_is_no_event(event: Event) -> None:
    data = event_to_data(event)
    with pytest.raises(DecodeError, match="unknown fields"):
        event_from_data(TOPICS[type(event)], {**data, "extra": 1})
    with pytest.raises(DecodeError, match="missing fields"):
        event_from_data(TOPICS[type(event)], {name: value for name, value in data.items() if name != "at"})


@pytest.mark.parametrize("topic", ["", "Event", "os.system", "OperationAdmitted.v2", "x" * 10_000])
def test_a_topic_outside_the_closed_table_is_refused(topic: str) -> None:
    with pytest.raises(ValueError, match="unknown event") as raised:
        event_from_data(topic, {"at": x.AT})
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Observation, {"row_count": True, "null_counts": {}, "distinct_counts": {}, "typed_hash": None}),
        (Observation, {"row_count": 1.0, "null_counts": {}, "distinct_counts": {}, "typed_hash": None}),
        (Observation, {"row_count": None, "null_counts": {}, "distinct_counts": {}, "typed_hash": None}),
        (Observation, {"row_count": 2**53, "null_counts": {}, "distinct_counts": {}, "typed_hash": None}),
        (Observation, {"row_count": 1, "null_counts": [], "distinct_counts": {}, "typed_hash": None}),
        (Observation, {"row_count": 1, "null_counts": {"a": "1"}, "distinct_counts": {}, "typed_hash": None}),
        (Observation, {"row_count": 1, "null_counts": {}, "distinct_counts": {}, "typed_hash": 5}),
        (Metrics, {"null_counts": "ab", "distinct_counts": [], "typed_hash": False}),
        (Metrics, {"null_counts": [], "distinct_counts": [], "typed_hash": 0}),
        (Observation, []),
        (Role, "successor"),
        (Role, 1),
        (Role, []),
    ],
)
def test_another_shape_is_refused(kind: type[Any], data: Any) -> None:
    with pytest.raises(DecodeError):
        decode(kind, data)


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":1}', "NaN", "-Infinity", "1e999", "-1e999", "", "{", b"\xff", "9" * 5_000]
)
def test_strict_json_is_strict(text: str | bytes) -> None:
    with pytest.raises(DecodeError):
        parse_strict(text)


def test_fractions_and_objects_have_no_place_in_an_event() -> None:
    for value in (1.5, object(), {1, 2}, b"bytes"):
        with pytest.raises(TypeError):
            encode(value)
