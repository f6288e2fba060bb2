"""Strict YAML: what scalars mean, what is refused, and where everything stood."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dpone.adapters.manifest.yaml import DEPTH_MAX, Place, Unreadable, parse


def problems(text: str) -> list[str]:
    with pytest.raises(Unreadable) as caught:
        parse(text, "m")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("2013-01-01", "2013-01-01"),
        ("12:30:45", "12:30:45"),
        ("true", True),
        ("FALSE", False),
        ("'true'", "true"),
        ("tRUE", "tRUE"),
        ("~", None),
        ("", None),
        ("Null", None),
        ("010", 10),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0.10", Decimal("0.10")),
        ("1.", Decimal(1)),
        (".5", Decimal("0.5")),
        ("1e3", Decimal(1000)),
        ('"1"', "1"),
        ("1.2.3", "1.2.3"),
        ("|-\n  1", "1"),
    ],
)
def test_scalars_follow_the_core_schema(written: str, meant: Any) -> None:
    value = parse(f"a: {written}\n", "m").value["a"]

    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", "m:3:1: the key 'a' stands here a second time"),
        ("x:\n  1: a\n", "m:2:3: a key must be text"),
        ("true: a\n", "m:1:1: a key must be text"),
        ("? [a]\n: b\n", "m:1:3: a key must be text"),
        ("<<: {a: 1}\n", "m:1:1: merge keys"),
        ("a: &x 1\n", "m:1:4: anchors"),
        ("a: *x\n", "m:1:4: aliases"),
        ("*x : 1\n", "m:1:1: aliases"),
        ("a: !!bool 1\n", "m:1:4: tags"),
        ("a: ! 1\n", "m:1:4: tags"),
        ("%YAML 1.1\n---\na: 1\n", "m:1:1: directives"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", "m:1:1: directives"),
        ("a: 1\n---\nb: 1\n", "m:2:1: a second document"),
        ("a: .nan\n", "m:1:4: NaN"),
        ("a: -.INF\n", "m:1:4: NaN"),
        ("a: " + "9" * 41, "m:1:4: a number of more than"),
        ("", "m:1:1: the file holds nothing"),
        ("# only a comment\n", "m:2:1: the file holds nothing"),
        ("a: é\x01\n", "m:1:5: not YAML"),
        ("a: [1\nb: 2\n", "m:2:2: not YAML"),
        ("a: " + "[" * (DEPTH_MAX + 1), "nested deeper than 64"),
        ("a: " + "{b: " * 100_000, "nested deeper than 64"),
    ],
)
def test_what_is_refused_is_refused_with_its_place(text: str, sentence: str) -> None:
    assert any(sentence in problem for problem in problems(text))


def test_all_problems_are_found_at_once_in_the_order_of_the_file() -> None:
    found = problems("a: &x 1\na: .inf\n1: !!str 2\n")

    assert [problem.split(": ")[0] for problem in found] == ["m:1:4", "m:2:1", "m:2:4", "m:3:1", "m:3:4"]


def test_places_count_characters_and_an_entry_stands_at_its_key() -> None:
    document = parse("é: [ü, {x: 1}]\nlist:\n  - a\n", "m")

    assert document.place(("é", 1, "x")) == Place("m", 1, 9)
    assert document.place(("list", 0)) == Place("m", 3, 5)
    assert document.place(("list", 0, "missing", "below")) == Place("m", 3, 5)
    assert document.at("é").at(1).place(("x",)) == Place("m", 1, 9)


def test_an_alias_bomb_costs_nothing() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))

    assert len(problems(bomb)) <= 100
