"""``dpone ops reopen``: let a finished operation load anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .deciding import answer, review_options
from .output import format_option, ledger_option

if TYPE_CHECKING:
    from ..runtime.compose import Composer
    from ..runtime.reviewing.review import Answer
    from ..runtime.settings import Settings


@click.command("reopen", short_help="Let a finished operation load anew.")
@click.argument("operation")
@review_options
@ledger_option
@format_option
@click.pass_obj
def reopen(
    composer: Composer | None, operation: str, reviewed_by: str, reason: str, ledger: str | None, output: str
) -> int:
    """Let OPERATION, complete or retired, load anew: the same command then reads the source into a new generation.

    The old history is kept. The operation holds the target from now on; a later run of the same dag and process that
    comes first displaces it, as it would any unfinished one.
    """

    def work(settings: Settings) -> Answer:
        from ..runtime.reviewing.reopening import reopen as reopening
        from .ops_decide import case_of

        return reopening(case_of(settings, composer, operation, (reviewed_by, reason, None), ledger))

    return answer("ops reopen", ledger, output, work)
