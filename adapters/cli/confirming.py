"""Showing what a decision means and asking for it: the operation's short id is typed, or given with ``--yes``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError, ErrorCode
from .output import write

if TYPE_CHECKING:
    from ..runtime.reviewing.case import Proposal

_SHORT = 8


@dataclass(slots=True)
class Asking:
    """One command's conversation. ``seen`` is the proposal that was shown last."""

    output: str
    yes: str | None
    seen: Proposal | None = None

    def present(self, proposal: Proposal) -> None:
        """Show the proposal to a person; in JSON it becomes a part of the document."""
        self.seen = proposal
        if self.output == "json":
            return
        write("Known:")
        _print(proposal.known)
        write("To be appended:")
        for line in proposal.appends:
            write(f"  + {line}")
        write("Afterwards:")
        for line in proposal.no_longer:
            write(f"  - {line}")

    def confirm(self, proposal: Proposal) -> None:
        """Raise DponeError (REQUEST_INVALID) unless the operation's id was typed."""
        short = proposal.operation[:_SHORT]
        if self.yes is not None:
            typed = self.yes
        elif self.output == "json" or not sys.stdin.isatty():
            raise _refused("Nobody can be asked here.", f"Add --yes {short}")
        else:
            typed = _asked(short)
        plain = typed.strip().lower().replace("-", "")
        if len(plain) < _SHORT or not proposal.operation.replace("-", "").startswith(plain):
            raise _refused("What was typed is not this operation's id: nothing was decided.", f"Type {short}")

    @property
    def details(self) -> dict[str, Any]:
        """The proposal as a part of the document; nothing when none was made."""
        if self.seen is None:
            return {}
        return {
            "known": dict(self.seen.known),
            "appends": list(self.seen.appends),
            "no_longer": list(self.seen.no_longer),
        }


def _print(known: Mapping[str, object]) -> None:
    for name, value in known.items():
        if isinstance(value, Mapping):
            for key, each in value.items():
                write(f"  {name + '.' + str(key):<20} {each}")
        elif value is not None:
            write(f"  {name:<20} {value}")


def _asked(short: str) -> str:
    try:
        typed: str = click.prompt(f"To decide so, type {short}", default="", show_default=False)
    except click.Abort:
        return ""  # the end of the input is no yes
    return typed


def _refused(what: str, next_: str) -> DponeError:
    return DponeError(ErrorCode.REQUEST_INVALID, what, safe="Nothing was changed.", next=next_)
