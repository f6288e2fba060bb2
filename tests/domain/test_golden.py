"""What an earlier release stored is read today, and what today's code stores is byte for byte the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import rfc8785

from dpone.domain import capsule
from dpone.domain.codec import parse_strict
from dpone.domain.event_table import EVENT_TYPES, event_from_data, event_to_data

from .golden_files import FOLDER, contents

FILES = sorted(FOLDER.glob("*.json"))
CAPSULES = [path for path in FILES if path.name.startswith("capsule.")]
EVENTS = [path for path in FILES if not path.name.startswith("capsule.")]


def test_every_event_class_and_capsule_version_has_its_file() -> None:
    assert {path.stem for path in EVENTS} >= set(EVENT_TYPES)
    assert [path.name for path in CAPSULES] == ["capsule.v1.json", "capsule.v2.json"]


@pytest.mark.parametrize("name", sorted(contents()))
def test_todays_bytes_are_the_golden_ones(name: str) -> None:
    assert (FOLDER / name).read_bytes() == contents()[name]


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.stem)
def test_a_golden_event_is_read_and_stored_again_unchanged(path: Path) -> None:
    event = event_from_data(path.stem, parse_strict(path.read_bytes()))
    assert rfc8785.dumps(event_to_data(event)) == path.read_bytes()


@pytest.mark.parametrize("path", CAPSULES, ids=lambda path: path.stem)
def test_a_golden_capsule_is_read_and_stored_again_unchanged(path: Path) -> None:
    assert capsule.dump(capsule.load(path.read_bytes())) == path.read_bytes()
