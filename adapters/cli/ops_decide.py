"""``dpone ops release-guard`` and ``retire``: what is shown first, then typed, then recorded with a name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...domain.errors import DponeError
from .confirming import Asking
from .deciding import answer, decided, review_options
from .output import format_option, ledger_option

if TYPE_CHECKING:
    from ..runtime.compose import Composer
    from ..runtime.reviewing.case import Case, Confirm, Present
    from ..runtime.reviewing.review import Answer
    from ..runtime.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def _evidence_options(command: F) -> F:
    command = click.option("--yes", metavar="ID", help="The operation's id, instead of being asked to type it.")(
        command
    )
    return click.option(
        "--evidence", metavar="TEXT", help="Why the same command cannot be used, or what the outcome is known by."
    )(command)


@click.command("release-guard", short_help="Give up a reader's guard.")
@click.argument("operation")
@review_options
@_evidence_options
@ledger_option
@format_option
@click.pass_obj
def release_guard(
    composer: Composer | None,
    operation: str,
    reviewed_by: str,
    reason: str,
    evidence: str | None,
    yes: str | None,
    ledger: str | None,
    output: str,
) -> int:
    """Give up the guard that OPERATION kept because its reader could not be ended.

    The same command takes such a guard over by itself; this is for when it cannot be used.
    """

    def work(settings: Settings) -> Answer:
        from ..runtime.reviewing.guarding import release_guard as releasing

        decision = (reviewed_by, reason, evidence)
        return _decided(releasing, settings, composer, operation, decision, Asking(output, yes), ledger)

    return answer("ops release-guard", ledger, output, work)


@click.command("retire", short_help="End an operation that cannot go on.")
@click.argument("operation")
@review_options
@_evidence_options
@ledger_option
@format_option
@click.pass_obj
def retire(
    composer: Composer | None,
    operation: str,
    reviewed_by: str,
    reason: str,
    evidence: str | None,
    yes: str | None,
    ledger: str | None,
    output: str,
) -> int:
    """End OPERATION and free its target. The live table stays exactly as it is; what is left beside it is listed.

    Needs every replica once a swap was dispatched. Killed anywhere, the same command goes on.
    """

    def work(settings: Settings) -> Answer:
        from ..runtime.reviewing.retiring import retire as retiring

        decision = (reviewed_by, reason, evidence)
        return _decided(retiring, settings, composer, operation, decision, Asking(output, yes), ledger)

    return answer("ops retire", ledger, output, work)


def _decided(
    work: Callable[[Case, Present, Confirm], Answer],
    settings: Settings,
    composer: Composer | None,
    operation: str,
    decision: tuple[str, str, str | None],
    asking: Asking,
    ledger: str | None,
) -> Answer:
    case = case_of(settings, composer, operation, decision, ledger)
    try:
        found = work(case, asking.present, asking.confirm)
    except DponeError as error:
        error.known |= asking.details
        raise
    return replace(found, result={**found.result, **asking.details})


def case_of(
    settings: Settings,
    composer: Composer | None,
    operation: str,
    decision: tuple[str, str, str | None],
    ledger: str | None,
) -> Case:
    """The recorded operation and who decides about it. Raises DponeError."""
    from ..runtime.compose import compose
    from ..runtime.lookup import one_operation
    from ..runtime.reviewing.case import Case
    from .opening import opened_ledger
    from .progress import Quiet

    made = decided(settings, *decision)
    with opened_ledger(os.environ, ledger) as store:
        found = one_operation(store, operation)
    return Case(found, settings, composer or compose, Quiet(), made)
