"""What an earlier release stored is read today, and what today's code stores is byte for byte the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rfc8785

from dpone.domain import capsule
from dpone.domain.codec import parse_strict
from dpone.domain.event_table import EVENT_TYPES, TOPICS, UPCASTERS, event_from_data, event_to_data

from .golden_files import FOLDER, contents

FILES = sorted(FOLDER.glob("*.json"))
CAPSULES = [path for path in FILES if path.name.startswith("capsule.")]
EVENTS = [path for path in FILES if not path.name.startswith("capsule.")]
PRESENT = [path for path in EVENTS if path.stem not in UPCASTERS]
EARLIER = [path for path in EVENTS if path.stem in UPCASTERS]


def test_every_event_class_and_capsule_version_has_its_file() -> None:
    assert {path.stem for path in EVENTS} >= set(EVENT_TYPES)
    assert [path.name for path in CAPSULES] == ["capsule.v1.json", "capsule.v2.json"]


@pytest.mark.parametrize("name", sorted(contents()))
def test_todays_bytes_are_the_golden_ones(name: str) -> None:
    assert (FOLDER / name).read_bytes() == contents()[name]


@pytest.mark.parametrize("path", PRESENT, ids=lambda path: path.stem)
def test_a_golden_event_is_read_and_stored_again_unchanged(path: Path) -> None:
    event = event_from_data(path.stem, parse_strict(path.read_bytes()))
    assert rfc8785.dumps(event_to_data(event)) == path.read_bytes()


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_an_earlier_version_is_read_as_the_class_of_today(path: Path) -> None:
    event = event_from_data(path.stem, parse_strict(path.read_bytes()))
    assert type(event) is EVENT_TYPES[path.stem]
    written = TOPICS[type(event)]
    assert written.startswith(f"{path.stem}.v")
    assert event_from_data(written, event_to_data(event)) == event


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_an_earlier_version_with_a_field_too_many_or_too_few_is_refused(path: Path) -> None:
    data = parse_strict(path.read_bytes())
    todays = event_to_data(event_from_data(path.stem, data))
    spoilt: tuple[Any, ...] = ({**data, "surplus": 1}, {"at": data["at"]}, todays, [])
    for spoiled in spoilt:
        with pytest.raises(ValueError):
            event_from_data(path.stem, spoiled)


@pytest.mark.parametrize("path", CAPSULES, ids=lambda path: path.stem)
def test_a_golden_capsule_is_read_and_stored_again_unchanged(path: Path) -> None:
    assert capsule.dump(capsule.load(path.read_bytes())) == path.read_bytes()
