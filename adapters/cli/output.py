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
    """The one document, on stdout."""
    write(json.dumps(data, ensure_ascii=False, allow_nan=False))


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
    tail = [f"Safe:  {error.safe}"] + ([f"Next:  {error.next}"] if error.next else [])
    text, rest = "\n".join(lines), "\n".join(tail)
    room = DIAGNOSTIC_BYTES_MAX - len(rest.encode()) - 8
    encoded = text.encode()
    if len(encoded) > room:
        text = encoded[:room].decode(errors="ignore") + "\n  …"
    write(f"{text}\n{rest}", sys.stderr)


def _told(error: DponeError, sentence: str) -> bool:
    return sentence == error.what or sentence in (error.next or "")


def write(text: str, stream: Any = None) -> None:
    """Print a line; a reader that went away is no error, and no control character reaches a terminal."""
    stream = stream or sys.stdout
    try:
        stream.write(printable(text) + "\n")
        stream.flush()
    except BrokenPipeError:
        return


def printable(text: str) -> str:
    """The text with everything but line ends that a terminal could obey made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
