"""What the pages list is what there is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from dpone.domain.errors import ErrorCode
from dpone.domain.process import SourceType
from dpone.domain.types import SUPPORTED

from .pages import ROOT

DOCS = ROOT / "docs"
TESTS = [path for path in (ROOT / "tests").rglob("*.py") if "docs" not in path.parts]


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_the_generated_parts_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "scripts.docs_reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert checked.returncode == 0, f"{checked.stdout}{checked.stderr}\nscripts/docs-reference --write"


def test_the_site_builds_and_every_page_and_link_is_there(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert built.returncode == 0, built.stderr
    assert not re.search(
        r"(?:src|href)=\"(?:https?:)?//[^\"]*\.(?:js|css|woff2?)", (tmp_path / "index.html").read_text()
    )


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_cause_what_is_safe_and_what_to_type(code: ErrorCode) -> None:
    section = re.search(
        rf"^### {code.value}\n(.*?)(?=^##|\Z)", text_of("reference/errors.md"), re.DOTALL | re.MULTILINE
    )
    assert section is not None
    assert all(part in section[1] for part in ("**Cause.**", "**Safe.**", "**Type.**"))


def test_every_command_has_a_section() -> None:
    from dpone.adapters.cli.entry import dpone

    reference = text_of("reference/cli.md")
    for path in _commands(dpone, click.Context(dpone, info_name="dpone")):
        assert f"## {path}\n" in reference


def _commands(group: click.Group, context: click.Context) -> list[str]:
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        found += _commands(command, inner) if isinstance(command, click.Group) else [inner.command_path]
    return found


@pytest.mark.parametrize(
    "page", ["reference/faults.md", "reference/certified.md", "how-to/add-a-transition.md", "how-to/connections.md"]
)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    everything = "\n".join(path.read_text(encoding="utf-8") for path in TESTS)
    names = re.findall(r"`(test_[a-z0-9_]+)`", text_of(page))
    assert [name for name in names if f"def {name}(" not in everything] == []
    paths = re.findall(r"`(tests/[a-zA-Z0-9_./]+)`", text_of(page))
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert names or paths


def test_every_supported_type_and_every_source_has_its_values_written_down() -> None:
    page = text_of("reference/values.md")
    of_targets, of_servers = page.split("## ClickHouse servers")
    for kind in re.findall(r"[A-Z][A-Za-z]+[0-9]*", SUPPORTED):
        assert kind in of_servers, kind
    for kind in ("Float32", "Float64", "Bool", "String", "Date", "Date32", "DateTime", "DateTime64", "Decimal", "UUID"):
        assert re.search(rf"^\| [^|]*`{kind}\b", of_targets, re.MULTILINE), kind
    titles = [line.removeprefix("## ").lower() for line in page.splitlines() if line.startswith("## ")]
    for source in SourceType:
        assert any(title.startswith(source.value) for title in titles), source


def test_every_dependency_says_why() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"].values()
    asked = [*project["project"]["dependencies"], *(line for lines in optional for line in lines)]
    names = {re.split(r"[\[<>=~! ]", line)[0] for line in asked}
    page = text_of("explanation/dependencies.md")
    assert [name for name in sorted(names) if f"| `{name}` |" not in page] == []


def test_no_page_is_left_half_written() -> None:
    for page in DOCS.rglob("*.md"):
        assert not re.search(r"TODO|FIXME|\bXXX\b", page.read_text(encoding="utf-8")), page
