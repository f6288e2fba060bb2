"""``constraints.txt``: every dependency by version and hash, from no index in particular, and installed as such."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from scripts import constraints_file
from scripts.constraints_file import FILE, differences, holds_here, normalised, parse, render

ROOT = Path(__file__).resolve().parents[2]


def test_every_line_is_a_version_with_a_hash_and_no_address() -> None:
    text = FILE.read_text()
    pins = list(parse(text))
    assert render(pins).splitlines()[2:] == text.splitlines()[2:]
    assert len({one.name for one in pins}) == len(pins)
    assert not re.search("://|index" + "-url|trusted-host|find-links|@", text)


@pytest.mark.parametrize(
    "line",
    [
        "a==1",
        "a>=1 --hash=sha256:" + "0" * 64,
        "a==1 --hash=md5:" + "0" * 32,
        "a==1 --hash=sha256:" + "0" * 63,
        "--index" + "-url https://index.invalid/simple",
        "-r other.txt",
        "a @ https://index.invalid/a.whl --hash=sha256:" + "0" * 64,
    ],
)
def test_any_other_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="hash"):
        list(parse(line))


def test_every_dependency_of_the_project_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {one.name: one.version for one in parse(FILE.read_text())}
    declared = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    for requirement in map(Requirement, declared):
        assert requirement.specifier.contains(pinned[normalised(requirement.name)]), str(requirement)


def test_what_is_installed_is_what_is_pinned() -> None:
    text = FILE.read_text()
    if not holds_here(text):
        pytest.skip(f"constraints.txt was not made for {constraints_file.machine()}")
    assert differences(text) == [], "scripts/constraints writes the file anew"


def test_a_version_that_is_not_the_pinned_one_is_found() -> None:
    text = FILE.read_text()
    if not holds_here(text):
        pytest.skip(f"constraints.txt was not made for {constraints_file.machine()}")
    found = differences(re.sub(r"^click==[^ ]+", "click==0.1", text, flags=re.MULTILINE))
    assert len(found) == 1
    assert found[0].startswith("click ")
