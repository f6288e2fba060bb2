"""Text, Arrow and Python values to target types, against Python's own arithmetic one value at a time."""

from __future__ import annotations

import math
import re
import struct
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.adapters.sources.arrows import from_arrow
from dpone.adapters.sources.pythons import from_python
from dpone.adapters.sources.refusals import RowRefused
from dpone.adapters.sources.texts import from_texts
from dpone.domain.types import parse_type

REFUSED = "refused"
INTEGERS = ("Int8", "UInt8", "Int16", "UInt32", "Int64", "UInt64")
DIGITS = st.text("0123456789", max_size=22)
NUMERIC = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.integers(-300, 300).map(str),
    st.text("0123456789+-.eExX_ nafi", max_size=8),
    st.tuples(st.sampled_from(["", "+", "-"]), DIGITS, st.sampled_from(["", "."]), DIGITS).map("".join),
    st.floats().map(repr),
)


def one(text: str, kind: str) -> Any:
    """The value of one text, or REFUSED."""
    try:
        return from_texts(pa.array([text]), parse_type(kind)).to_pylist()[0]
    except RowRefused:
        return REFUSED


@settings(max_examples=300, deadline=None)
@given(st.lists(NUMERIC, min_size=1, max_size=6), st.sampled_from(INTEGERS))
def test_integers_are_exact_or_refused_at_the_first_bad_row(texts: list[str], kind: str) -> None:
    low, high = parse_type(kind).integer_range
    expected = [int(t) if re.fullmatch("[+-]?[0-9]+", t) and low <= int(t) <= high else REFUSED for t in texts]
    if REFUSED not in expected:
        assert from_texts(pa.array(texts), parse_type(kind)).to_pylist() == expected
        return
    with pytest.raises(RowRefused) as refused:
        from_texts(pa.array(texts), parse_type(kind))
    assert refused.value.index == expected.index(REFUSED)


@settings(max_examples=300, deadline=None)
@given(NUMERIC)
def test_doubles_are_what_python_reads(text: str) -> None:
    found = one(text, "Float64")
    if re.fullmatch(r"(?i)[+-]?(nan|inf|infinity)", text):
        assert found == float(text) or (math.isnan(found) and math.isnan(float(text)))
    elif not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) or math.isinf(float(text)):
        assert found == REFUSED
    else:
        assert struct.pack("d", found) == struct.pack("d", float(text))


@settings(max_examples=300, deadline=None)
@given(st.decimals(-(10**6), 10**6, places=12).map(str))
def test_a_text_is_rounded_once_to_the_nearest_single(text: str) -> None:
    found = Fraction(one(text, "Float32"))
    bits = struct.unpack("<I", struct.pack("<f", float(found)))[0]
    exact = Fraction(text)
    for neighbour in (bits - 1, bits + 1):
        if 0 <= neighbour < 2**32:
            other = struct.unpack("<f", struct.pack("<I", neighbour))[0]
            if math.isfinite(other):
                assert abs(found - exact) <= abs(Fraction(other) - exact)


@settings(max_examples=300, deadline=None)
@given(st.tuples(st.sampled_from(["", "-", "+"]), st.text("0123456789", min_size=1, max_size=9), DIGITS))
def test_decimals_fit_or_are_refused(parts: tuple[str, str, str]) -> None:
    text = f"{parts[0]}{parts[1]}.{parts[2]}"
    found = one(text, "Decimal(9, 3)")
    with localcontext() as context:
        context.prec = 60
        value = Decimal(text)
        fits = value == round(value, 3) and abs(value) < 10**6
    assert (found == value) if fits else (found == REFUSED)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("16777217", "Float32", 16777216.0),
        ("1e999", "Float64", REFUSED),
        ("3.5e38", "Float32", REFUSED),
        ("1e-999", "Float64", 0.0),
        ("nan(12)", "Float64", REFUSED),
        ("0x1p3", "Float64", REFUSED),
        ("true", "Bool", True),
        ("0", "Bool", False),
        ("yes", "Bool", REFUSED),
        ("2149-06-06", "Date", date(2149, 6, 6)),
        ("2149-06-07", "Date", REFUSED),
        ("1969-12-31", "Date", REFUSED),
        ("1900-01-01", "Date32", date(1900, 1, 1)),
        ("1899-12-31", "Date32", REFUSED),
        ("2299-12-31", "Date32", date(2299, 12, 31)),
        ("2300-01-01", "Date32", REFUSED),
        ("2013-02-29", "Date", REFUSED),
        ("2013-1-01", "Date", REFUSED),
        ("2013-01-01T10:00:00Z", "DateTime", datetime(2013, 1, 1, 10, tzinfo=UTC)),
        ("2013-01-01 10:00:00", "DateTime", datetime(2013, 1, 1, 10, tzinfo=UTC)),
        ("2013-07-01 10:00:00", "DateTime('Europe/Berlin')", datetime(2013, 7, 1, 8, tzinfo=UTC)),
        ("2013-07-01T10:00:00Z", "DateTime('Europe/Berlin')", datetime(2013, 7, 1, 10, tzinfo=UTC)),
        ("2013-07-01 10:00:00.000", "DateTime('Europe/Berlin')", datetime(2013, 7, 1, 8, tzinfo=UTC)),
        ("2013-10-27 02:30:00", "DateTime('Europe/Berlin')", REFUSED),
        ("2013-03-31 02:30:00", "DateTime('Europe/Berlin')", REFUSED),
        ("2013-01-01T10:00:00-05:30", "DateTime", datetime(2013, 1, 1, 15, 30, tzinfo=UTC)),
        ("2013-01-01T10:00:00.5Z", "DateTime", REFUSED),
        ("2013-01-01T10:00:00.000000000000", "DateTime", datetime(2013, 1, 1, 10, tzinfo=UTC)),
        ("2013-01-01T10:00:00.25Z", "DateTime64(2)", datetime(2013, 1, 1, 10, 0, 0, 250_000, tzinfo=UTC)),
        ("2013-01-01T10:00:00.255Z", "DateTime64(2)", REFUSED),
        ("1905-01-01T10:00:00.250+01:00", "DateTime64(3)", datetime(1905, 1, 1, 9, 0, 0, 250_000, tzinfo=UTC)),
        ("2106-02-07T06:28:15Z", "DateTime", datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)),
        ("2106-02-07T06:28:16Z", "DateTime", REFUSED),
        ("1969-12-31T23:59:59Z", "DateTime", REFUSED),
        ("2299-12-31T23:59:59Z", "DateTime64(6)", datetime(2299, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2300-01-01T00:00:00Z", "DateTime64(6)", REFUSED),
        ("2262-04-12T00:00:00Z", "DateTime64(9)", REFUSED),
        ("2262-04-12T00:00:00.1Z", "DateTime64(9)", REFUSED),
        ("2013-01-01T10:00", "DateTime", REFUSED),
        ("2013-01-01T24:00:00", "DateTime", REFUSED),
        ("2013-01-01T10:00+05:30", "DateTime", REFUSED),
        ("0F0E0D0C-0B0A-0908-0706-050403020100", "UUID", "0f0e0d0c-0b0a-0908-0706-050403020100"),
        ("0f0e0d0c0b0a09080706050403020100", "UUID", REFUSED),
    ],
)
def test_single_texts(text: str, kind: str, value: Any) -> None:
    assert one(text, kind) == value


@settings(max_examples=200, deadline=None)
@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2105, 1, 1)),
    st.sampled_from(["", "Z", "+02:00", "-11:30"]),
    st.sampled_from("T "),
    st.integers(0, 9),
)
def test_instants_are_what_python_reads(moment: datetime, offset: str, letter: str, digits: int) -> None:
    text = moment.isoformat(letter, "microseconds") + offset
    expected = datetime.fromisoformat(text if offset else text + "Z").astimezone(UTC)
    fits = moment.microsecond % 10 ** max(0, 6 - digits) == 0
    found = one(text, f"DateTime64({digits})")
    if not fits:
        assert found == REFUSED
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1, 255], pa.int64()), "UInt8", [1, 255]),
        (pa.array([1, 256, -1], pa.int64()), "UInt8", 1),
        (pa.array([-1], pa.int8()), "UInt64", 0),
        (pa.array([1.0, 2.5]), "Int32", 1),
        (pa.array([float("nan")]), "Int32", 0),
        (pa.array([0.5, 0.1]), "Float32", 1),
        (pa.array([2**53, 2**53 + 1]), "Float64", 1),
        (pa.array([b"\xff", None]), "String", [b"\xff", None]),
        (pa.array([b"\xff"]), "UInt8", 0),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "String", ["a", "b", "a"]),
        (pa.array(["7", "x"]), "UInt8", 1),
        (pa.array([1, 2], pa.int8()), "Bool", 1),
        (pa.array([1], pa.int8()), "String", 0),
        (pa.array([10**9, 10**9 + 1], pa.timestamp("ns")), "DateTime", 1),
        (pa.array([0, 2**32], pa.timestamp("s")), "DateTime", 1),
        (pa.array([2**62], pa.timestamp("s")), "DateTime64(9)", 0),
        (
            pa.array([-1_500_000], pa.timestamp("us")),
            "DateTime64(1)",
            [datetime(1969, 12, 31, 23, 59, 58, 500_000, UTC)],
        ),
        (
            pa.array([datetime(2013, 7, 1, 10, 0, 0, 500_000)], pa.timestamp("us")),
            "DateTime64(3, 'Europe/Berlin')",
            [datetime(2013, 7, 1, 8, 0, 0, 500_000, UTC)],
        ),
        (
            pa.array([datetime(2013, 7, 1, 10)], pa.timestamp("us", "America/New_York")),
            "DateTime('Europe/Berlin')",
            [datetime(2013, 7, 1, 10, tzinfo=UTC)],
        ),
        (pa.array([date(1970, 1, 1), date(1969, 1, 1)]), "Date", 1),
        (pa.array([Decimal("1.50"), Decimal("1.55")]), "Decimal(5, 1)", 1),
        (pa.array([b"\x0f" * 16], pa.binary(16)), "UUID", ["0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f"]),
    ],
)
def test_arrow_values(values: Any, kind: str, expected: Any) -> None:
    if isinstance(expected, list):
        assert from_arrow(values, parse_type(kind)).to_pylist() == expected
        return
    with pytest.raises(RowRefused) as refused:
        from_arrow(values, parse_type(kind))
    assert refused.value.index == expected


def test_nan_is_a_value_and_never_null() -> None:
    found = from_arrow(pa.array([float("nan"), None], pa.float64()), parse_type("Nullable(Float32)"))
    assert found.null_count == 1
    assert math.isnan(found[0].as_py())


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None, 2.0], "UInt8", [1, None, 2]),
        ([1, None, 2.5, "x"], "UInt8", 2),
        ([1, "1"], "UInt8", 1),
        ([1, 1.5], "Float64", [1.0, 1.5]),
        ([2**53 + 1], "Float64", 0),
        (["a", b"\xff", None], "String", [b"a", b"\xff", None]),
        (["a", 1], "String", 1),
        (["2013-01-01", 5], "Date", 1),
        ([1, 0, 2], "Bool", 2),
        ([1, "1.50", 0.25], "Decimal(5, 2)", [Decimal(1), Decimal("1.5"), Decimal("0.25")]),
        ([0.1], "Decimal(5, 2)", 0),
        ([None], "UUID", [None]),
        ([object()], "String", 0),
    ],
)
def test_python_values(values: list[Any], kind: str, expected: Any) -> None:
    if isinstance(expected, list):
        assert from_python(values, parse_type(kind)).to_pylist() == expected
        return
    with pytest.raises(RowRefused) as refused:
        from_python(values, parse_type(kind))
    assert refused.value.index == expected
