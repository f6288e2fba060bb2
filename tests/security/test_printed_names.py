"""Whatever a name holds, a terminal shows it on its own line and obeys nothing, and a program can read the document."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone.adapters.cli.output import diagnose, print_document, print_failure, printable, write
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.limits import DIAGNOSTIC_BYTES_MAX
from tests.cli.sandbox import Sandbox

HOSTILE = [
    "\x1b[2J\x1b[1;1H",  # clears the screen
    "\x1b]0;title\x07",  # sets the window's title
    "\x1b]52;c;cm0gLXJmIH4=\x07",  # fills the clipboard
    "\x9b31m",  # the same with one character of C1
    "a\r\x1b[Kb",  # overwrites what stands on the line
    "a\b\b\bb",
    "x\n  ● complete          +0.1 s",  # forges a line
    "x\u2028y\u2029z",
    "\u202etxt.exe\u202c",  # turns the direction of writing
    "\u200b\u00a0\u3000\ufeff",  # cannot be seen
    "\x7f\x00",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_stays_one_line_that_no_terminal_obeys(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(f"kept: db.{name}")
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert shown.removesuffix("\n").isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_diagnostic_has_the_lines_that_it_means_to_have(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    diagnose(DponeError(ErrorCode.FOREIGN_TARGET, f"{name} is there.", errors=(f"So is {name}.",), next=f"look {name}"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_document_is_json_and_printable_and_says_the_name_exactly(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_failure("ops list", DponeError(ErrorCode.FOREIGN_TARGET, name), "json")
    shown = capsys.readouterr().out
    assert shown.removesuffix("\n").isprintable()
    assert json.loads(shown)["result"]["errors"] == [name]


@given(st.text(st.characters(), max_size=20))
def test_any_text_survives_the_document_and_no_text_breaks_a_line(text: str) -> None:
    kept, sys.stdout = sys.stdout, io.StringIO()
    try:
        print_document({text: text})
        shown = sys.stdout.getvalue()
    finally:
        sys.stdout = kept
    assert json.loads(shown) == {text: text}
    assert printable(text).isprintable()


@pytest.mark.parametrize("part", ["what", "safe", "next", "errors"])
@pytest.mark.parametrize("character", ["a", "\x1b", "é", "\u202e"])
def test_a_diagnostic_is_bounded_as_it_is_shown(part: str, character: str, capsys: pytest.CaptureFixture[str]) -> None:
    long = character * 5_000
    said = {"what": "w", "safe": "s", "next": "n", **{part: (long,) if part == "errors" else long}}
    diagnose(DponeError(ErrorCode.INTERNAL, **said))  # type: ignore[arg-type]
    shown = capsys.readouterr().err
    assert len(shown.encode()) <= DIAGNOSTIC_BYTES_MAX
    assert "Safe:  " in shown
    assert "…" in shown


@pytest.mark.parametrize("name", ["a\u00a0b", "a\u202eb", "a\x1b[31mb", "a\nb"])
def test_a_file_with_such_a_name_leaves_every_document_whole(name: str, sandbox: Sandbox) -> None:
    path = sandbox.folder / name
    path.write_text("kind: nothing")
    for words in (["run", str(path)], ["validate", str(path)], ["plan", str(path)], ["doctor", str(path)]):
        asked = sandbox.dpone(*words, "--format", "json")
        assert asked.document["passed"] is False
        assert asked.code == 2
        told = sandbox.dpone(*words)
        assert all(line.isprintable() for line in (told.out + told.err).splitlines())


def test_names_that_were_recorded_before_are_shown_harmlessly_by_every_command(sandbox: Sandbox) -> None:
    """A column of the source may be called anything; its name goes into the ledger and comes back in many places."""
    sandbox.write_rows([(1, "n", "1.00", "2026-01-01 00:00:00")])
    sandbox.write_manifest(name="a\u00e9b", gates=[{"id": "many", "type": "min_rows", "rows": 5}])
    sandbox.environment["DPONE_REVISION"] = "r\x1b[2J\nforged"
    loaded = sandbox.run()
    found = sandbox.dpone("ops", "list", "--format", "json").result["items"]
    assert loaded.code == 1, loaded.err
    operation = found[0]["operation_id"]
    for words in (
        ["ops", "list"],
        ["ops", "show", operation],
        ["ops", "explain", operation],
        ["audit", "replay", operation],
        ["ledger", "status"],
    ):
        told = sandbox.dpone(*words)
        assert told.code == 0, told.err
        assert all(line.isprintable() for line in told.out.splitlines())
