"""What every command prints: one JSON document on stdout, or text for a person; diagnostics on stderr, bounded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ...domain.errors import DponeError
from ...domain.limits import DIAGNOSTIC_BYTES_MAX
from ...domain.outcome import Asked, Done, document

FORMATS = ("text", "json")
_CUT = "\n  …"
F = TypeVar("F", bound=Callable[..., Any])


def format_option(command: F) -> F:
    """The option ``--format``."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(FORMATS),
        default="text",
        help="text for a person, or exactly one JSON document.",
    )(command)


def ledger_option(command: F) -> F:
    """The option ``--ledger``."""
    return click.option(
        "--ledger", metavar="URL", help="The ledger; default $DPONE_LEDGER, else one under $DPONE_HOME."
    )(command)


def format_of(words: Sequence[str]) -> str:
    """The last valid ``--format`` on the line: it decides also when the line could not be understood."""
    chosen = "text"
    for index, word in enumerate(words):
        value = word.partition("=")[2] if word.startswith("--format=") else None
        if word == "--format" and index + 1 < len(words):
            value = words[index + 1]
        if value in FORMATS:
            chosen = value
    return chosen


def print_document(data: dict[str, Any]) -> None:
    """The one document, on stdout: one line."""
    _emit(_json_printable(json.dumps(data, ensure_ascii=False, allow_nan=False)), sys.stdout)


def print_result(command: str, result: dict[str, Any]) -> None:
    """The document of a command other than ``run``."""
    print_document({"command": command, "passed": True, "result": result})


def print_failure(command: str, error: DponeError, output: str) -> None:
    """The document and the diagnostic of a command that could not do what was asked."""
    if output == "json":
        failed = document(Asked(), Done(), error)
        if command == "run":
            print_document(failed)
        else:
            print_document({"command": command, "passed": False, "result": failed["result"]})
    diagnose(error)


def diagnose(error: DponeError) -> None:
    """What happened, what is safe, what to type: on stderr, at most 4 KiB."""
    lines = [f"{error.code.value}: {error.what}"]
    lines += [f"  - {sentence}" for sentence in error.errors if not _told(error, sentence)]
    tail = [f"Safe:  {error.safe}", *_next(error)]
    rest = _cut(tail, DIAGNOSTIC_BYTES_MAX // 2)
    text = _cut(lines, DIAGNOSTIC_BYTES_MAX - len(rest.encode()) - 2)
    _emit(f"{text}\n{rest}", sys.stderr)


def _next(error: DponeError) -> list[str]:
    """What to type, on one line; a block to paste keeps its own lines."""
    if error.next is None:
        return []
    if error.block is None or not error.next.endswith(f"\n{error.block}"):
        return [f"Next:  {error.next}"]
    return [f"Next:  {error.next.removesuffix(error.block).rstrip()}", *error.block.split("\n")]


def _cut(lines: Sequence[str], bytes_max: int) -> str:
    """The lines as they are shown, and as much of them as there is room for."""
    encoded = "\n".join(map(printable, lines)).encode()
    if len(encoded) <= bytes_max:
        return encoded.decode()
    return encoded[: bytes_max - len(_CUT.encode())].decode(errors="ignore") + _CUT


def _told(error: DponeError, sentence: str) -> bool:
    return sentence == error.what or sentence in (error.next or "")


def write(text: str, stream: Any = None) -> None:
    """Print one line, whatever the names in it hold."""
    _emit(printable(text), stream or sys.stdout)


def write_block(text: str) -> None:
    """Print several lines that no name of anybody else's is a part of."""
    _emit("\n".join(map(printable, text.split("\n"))), sys.stdout)


def printable(text: str) -> str:
    """The text on one line, with everything that a terminal could obey made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _visible(c) for c in text)


def _visible(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def _json_printable(text: str) -> str:
    """The same for JSON, whose own escapes stay readable by every parser. Its control characters are escaped before."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _emit(text: str, stream: Any) -> None:
    """A reader that went away is no error."""
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        return
