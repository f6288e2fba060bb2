"""What the commands of a person's decision have in common: their options, and how their answer is printed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...domain.errors import DponeError
from .output import print_failure, print_result, write

if TYPE_CHECKING:
    from ..runtime.reviewing.review import Answer, Decision
    from ..runtime.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def review_options(command: F) -> F:
    """Who decided, and why."""
    command = click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")(command)
    return click.option("--reviewed-by", required=True, metavar="NAME", help="Who decided; it is recorded.")(command)


def platform_option(command: F) -> F:
    """Which platform, where a target's name is not enough."""
    return click.option(
        "--platform", metavar="ID", help="The platform's id, where several have a target of this name."
    )(command)


def decided(settings: Settings, reviewed_by: str, reason: str, evidence: str | None = None) -> Decision:
    """The decision as it was typed. Raises DponeError."""
    from ..runtime.reviewing.review import decision

    return decision(reviewed_by, reason, settings.by, evidence)


def answer(command: str, ledger: str | None, output: str, work: Callable[[Settings], Answer]) -> int:
    """Do the work and print what came of it; returns the exit code."""
    from ..runtime.settings import settings_from

    try:
        settings = settings_from(os.environ, ledger)
        found = work(settings)
    except DponeError as error:
        addressed(error, ledger)
        print_failure(command, error, output)
        return error.exit_code
    if output == "json":
        print_result(command, {**found.result, "changes": list(found.changes)})
        return 0
    for change in found.changes or ("Nothing changed: it was so already.",):
        write(f"✔ {change}")
    return 0


def addressed(error: DponeError, ledger: str | None) -> None:
    """Let a command that is to be typed next name the ledger that this one used."""
    from ..runtime.ledger_words import ledger_words

    told = error.next or ""
    if told.startswith("dpone ") and " --ledger " not in told:
        named = ledger_words(ledger or os.environ.get("DPONE_LEDGER") or None, os.environ)
        error.next = " ".join([told, *(shlex.quote(word) for word in named)])
