"""The layout that a newcomer can rely on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .checkout import ROOMS, ROOT, modules

LINES_MAX = 400
FORBIDDEN_WORDS = ("manager", "helper", "util", "utils", "base", "common", "misc")
MODULES = sorted(modules())


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_rooms_are_there() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(ROOMS)
    for room in ROOMS:
        assert (ROOT / "src" / "dpone" / room).resolve() == ROOT / room


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_fits_into_a_head(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < LINES_MAX


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(_tree(path)), "a docstring: what lives here"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_no_assert_guards_anything(path: Path) -> None:
    """Asserts vanish under -O; what must hold is checked and raised."""
    lines = [node.lineno for node in ast.walk(_tree(path)) if isinstance(node, ast.Assert)]
    assert lines == []


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_imports_inside_a_room_are_relative(path: Path) -> None:
    absolute = [
        node.lineno
        for node in ast.walk(_tree(path))
        if (isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "dpone")
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "dpone" for alias in node.names))
    ]
    assert absolute == []


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_name_says_what_a_thing_is(path: Path) -> None:
    named = [node.name for node in ast.walk(_tree(path)) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    for name in (path.stem, *named):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
        assert not set(words) & set(FORBIDDEN_WORDS), name


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in MODULES}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
