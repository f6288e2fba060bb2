"""The capsule: read strictly, sealed by its digest, and never larger than was promised before anything is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.domain import capsule as c
from dpone.domain.codec import encode
from dpone.domain.limits import CAPSULE_BYTES_MAX, COUNT_MAX, METRIC_COLUMNS_MAX, WARNING_CHARACTERS_MAX, WARNINGS_MAX
from dpone.domain.tables import Column, Metrics, Observation

from . import examples as x


def finished(core: c.CapsuleCore, **changed: Any) -> c.Capsule:
    receipt = c.Receipt(
        id=x.RECEIPT,
        operation=x.OPERATION,
        generation=x.GENERATION,
        core_digest=c.digest(core),
        accepted_by_attempt=1,
    )
    whole = c.Capsule(
        core=core,
        core_digest=c.digest(core),
        state="COMPLETE",
        target=x.OBSERVATION if core.target_plan else None,
        receipt=receipt,
        warnings=(),
    )
    return replace(whole, **changed)


V1, V2 = finished(x.core(observes=False)), finished(x.core())


@pytest.mark.parametrize("whole", [V1, V2])
def test_what_was_dumped_loads_as_it_was(whole: c.Capsule) -> None:
    assert c.load(c.dump(whole)) == whole


def edited(edit: Callable[[dict[str, Any]], Any]) -> bytes:
    data = json.loads(c.dump(V2))
    edit(data)
    return json.dumps(data).encode()


def with_core_digest(core: c.CapsuleCore) -> bytes:
    return rfc8785.dumps(encode(finished(core)))


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "unknown field": lambda data: data.update(extra=1),
    "unknown field in the core": lambda data: data["core"].update(extra=1),
    "missing field": lambda data: data.pop("warnings"),
    "boolean as a count": lambda data: data["target"].update(row_count=True),
    "text as a count": lambda data: data["target"].update(row_count="3"),
    "fraction as a count": lambda data: data["target"].update(row_count=3.0),
    "negative count": lambda data: data["target"].update(row_count=-1),
    "count that JSON cannot carry": lambda data: data["target"].update(row_count=COUNT_MAX + 1),
    "count as a boolean's place": lambda data: data["core"]["policy"].update(durable=1),
    "unknown state": lambda data: data.update(state="DONE"),
    "unknown format": lambda data: data["core"].update(format="dpone.quality.replay.v3"),
    "version 1 with a target plan": lambda data: data["core"].update(format=c.FORMAT_V1),
    "wrong digest": lambda data: data.update(core_digest="sha256:" + "00" * 32),
    "core that was edited": lambda data: data["core"].update(fence=2),
    "gate that was edited": lambda data: data["core"]["gates"][0].update(passed=False),
    "infinity in a gate": lambda data: data["core"]["gates"][0].update(observed={"rows": float("inf")}),
    "fraction in a gate": lambda data: data["core"]["gates"][0].update(observed={"rows": 0.5}),
    "huge number in a gate": lambda data: data["core"]["gates"][0].update(observed={"rows": 2**70}),
    "lone surrogate": lambda data: data["core"]["gates"][0].update(observed={"rows": "\ud800"}),
    "null instead of a core": lambda data: data.update(core=None),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_capsule_is_refused(what: str) -> None:
    with pytest.raises(c.CapsuleInvalid):
        c.load(edited(EDITS[what]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b"{",
        b'{"core":NaN}',
        b'{"core":1e999}',
        b'{"core":' + b"9" * 5_000 + b"}",
        b"[" * 100_000,
        c.dump(V2).replace(b'{"core":', b'{"state":"FAILED","core":', 1),
        c.dump(V2).replace(b'"row_count":3', b'"row_count":3,"row_count":3', 1),
    ],
    ids=["empty", "list", "not UTF-8", "cut", "NaN", "infinite", "digits", "deep", "key twice", "count twice"],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(c.CapsuleInvalid):
        c.load(data)


def test_more_bytes_than_allowed_are_not_even_parsed() -> None:
    with pytest.raises(c.CapsuleInvalid, match=str(CAPSULE_BYTES_MAX)):
        c.load(c.dump(V2) + b" " * CAPSULE_BYTES_MAX)


def test_more_bytes_than_allowed_are_not_written() -> None:
    fat = finished(x.core(inventory=("r" * CAPSULE_BYTES_MAX,)))
    with pytest.raises(c.CapsuleInvalid):
        c.dump(fat)


def test_version_one_holds_no_target_observation() -> None:
    with pytest.raises(c.CapsuleInvalid):
        c.load(c.dump(replace(V1, target=x.OBSERVATION)))


def test_a_gate_type_that_is_not_known_is_kept_as_data() -> None:
    gate = replace(x.GATE, type="freshness", type_version=9, parameters={"hours": "1.5"})
    core = x.core(gates=(gate,))
    assert c.load(with_core_digest(core)).core.gates == (gate,)


COUNTS = st.integers(0, COUNT_MAX)
NAMES = st.lists(st.text(min_size=1, max_size=30), unique=True, max_size=8).map(tuple)


@st.composite
def grown(draw: Callable[..., Any]) -> c.Capsule:
    """A core with any metrics, and any envelope that it can grow into."""
    names, hashed = draw(NAMES), draw(st.booleans())
    metrics = Metrics(names, names[::-1], hashed)
    plan = c.TargetPlan(
        columns=tuple(Column(name, "String") for name in names),
        metrics=metrics,
        acceptance_mode="required",
        replicas=("r1",),
    )
    owes = draw(st.booleans())
    core = x.core() if owes else x.core(observes=False)
    core = replace(core, target_plan=plan if owes else None)
    seen = Observation(
        draw(COUNTS),
        {name: draw(COUNTS) for name in names},
        {name: draw(COUNTS) for name in names},
        f"v1:{draw(COUNTS)}:{draw(st.integers(0, 2**64 - 1))}" if hashed else None,
    )
    warnings = draw(st.lists(st.text(max_size=WARNING_CHARACTERS_MAX), max_size=WARNINGS_MAX))
    receipt = c.Receipt(
        id=str(draw(st.uuids())),
        operation=x.OPERATION,
        generation=x.GENERATION,
        core_digest=c.digest(core),
        accepted_by_attempt=draw(COUNTS),
    )
    return finished(
        core,
        state=draw(st.sampled_from(["PREPARED", "TARGET_PENDING", "COMPLETE", "FAILED"])),
        target=draw(st.sampled_from([None, seen])) if owes else None,
        receipt=draw(st.sampled_from([None, receipt])),
        warnings=tuple(warnings),
    )


@settings(max_examples=150, deadline=None)
@given(grown())
def test_no_finished_envelope_is_larger_than_promised(whole: c.Capsule) -> None:
    assert len(c.dump(whole)) <= c.envelope_bytes_max(whole.core)


def test_the_promise_is_kept_exactly_by_the_largest_envelope() -> None:
    core = x.core()
    plan = core.target_plan
    assert plan is not None
    largest = finished(
        core,
        state="TARGET_PENDING",
        target=c.largest_observation(plan.metrics),
        receipt=c.Receipt(
            id="f" * 36,
            operation="f" * 36,
            generation="f" * 36,
            core_digest="sha256:" + "f" * 64,
            accepted_by_attempt=COUNT_MAX,
        ),
        warnings=("\x01" * WARNING_CHARACTERS_MAX,) * WARNINGS_MAX,
    )
    assert len(c.dump(largest)) == c.envelope_bytes_max(core)


def test_so_many_metric_columns_and_no_more() -> None:
    names = tuple(f"c{number}" for number in range(METRIC_COLUMNS_MAX + 1))
    assert c.metrics_problem(Metrics(names[:-1], names[:-1])) is None
    assert c.metrics_problem(Metrics(names[:-1], names[-1:])) is not None
