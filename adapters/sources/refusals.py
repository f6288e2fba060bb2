"""The ways a source is refused, as errors with a place and never with a value."""

from __future__ import annotations

from dataclasses import dataclass

from ...domain.errors import ErrorCode, SourceFailed
from ...domain.types import ColumnType

UNTOUCHED = "Nothing of this source was published; the live table is as it was."
NAME_CHARACTERS_MAX = 80


@dataclass(slots=True)
class RowRefused(Exception):
    """The first value of an array that its target type cannot hold exactly: its index and the reason, no value."""

    index: int
    reason: str


def shown(name: str) -> str:
    """A column's or file's name for a message: bounded, quoted, control characters escaped."""
    cut = name if len(name) <= NAME_CHARACTERS_MAX else name[:NAME_CHARACTERS_MAX] + "…"
    return f'"{cut}"' if cut.isprintable() else ascii(cut)


def unreadable(what: str, next_step: str) -> SourceFailed:
    """The bytes are not what they should be, or are not there."""
    return SourceFailed(ErrorCode.SOURCE_UNREADABLE, what, safe=UNTOUCHED, next=next_step)


def changed(name: str) -> SourceFailed:
    """The source is not the one whose reading began."""
    return SourceFailed(
        ErrorCode.SOURCE_CHANGED,
        f"{shown(name)} changed while it was read.",
        safe=UNTOUCHED,
        next="Wait until its writer is done (or write to another name and rename), then repeat the same command.",
    )


def too_large(name: str, max_bytes: int, *, unpacked: bool) -> SourceFailed:
    """More bytes than the manifest allows."""
    kind = "unpacks to" if unpacked else "holds"
    return SourceFailed(
        ErrorCode.SOURCE_TOO_LARGE,
        f"{shown(name)} {kind} more than max_source_bytes ({max_bytes:,} bytes).",
        safe=UNTOUCHED,
        next="If that is right, raise sink.strategy.max_source_bytes and repeat the command.",
    )


def declaration(what: str, next_step: str, errors: tuple[str, ...] = (), block: str | None = None) -> SourceFailed:
    """The manifest does not fit the source. ``block`` are lines to paste, which ``next_step`` ends with."""
    return SourceFailed(
        ErrorCode.MANIFEST_INVALID,
        what,
        safe="Nothing was read or changed.",
        next=next_step,
        errors=errors,
        block=block,
    )


def value_refused(name: str, column: str, target: ColumnType, place: str, reason: str) -> SourceFailed:
    """A value that the target type cannot hold exactly. ``place`` is ``line 7`` or ``row 7``."""
    return SourceFailed(
        ErrorCode.VALUE_REFUSED,
        f"{shown(name)}, {place}, column {shown(column)}: {reason} ({target}).",
        safe=UNTOUCHED,
        next="Correct the value in the source, or declare a type that holds it, and repeat the command.",
    )
