"""``dpone ops hold`` and ``unhold``: stop new loads of a target, and allow them again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from .deciding import answer, decided, platform_option, review_options
from .output import format_option, ledger_option

if TYPE_CHECKING:
    from ..runtime.reviewing.review import Answer
    from ..runtime.settings import Settings


@click.command("hold", short_help="Stop new loads of a target.")
@click.argument("table", metavar="DATABASE.TABLE")
@review_options
@platform_option
@ledger_option
@format_option
def hold(table: str, reviewed_by: str, reason: str, platform: str | None, ledger: str | None, output: str) -> int:
    """Stop new loads of DATABASE.TABLE. An operation that holds it now goes on to its end."""

    def work(settings: Settings) -> Answer:
        from ..runtime.compose import SystemClock
        from ..runtime.reviewing.holding import hold as holding
        from .opening import opened_ledger

        decision = decided(settings, reviewed_by, reason)
        with opened_ledger(os.environ, ledger) as store:
            return holding(store, table, platform, decision, SystemClock().now)

    return answer("ops hold", ledger, output, work)


@click.command("unhold", short_help="Allow loads of a target again.")
@click.argument("table", metavar="DATABASE.TABLE")
@review_options
@platform_option
@ledger_option
@format_option
def unhold(table: str, reviewed_by: str, reason: str, platform: str | None, ledger: str | None, output: str) -> int:
    """Allow loads of DATABASE.TABLE that somebody stopped."""

    def work(settings: Settings) -> Answer:
        from ..runtime.compose import SystemClock
        from ..runtime.reviewing.holding import unhold as unholding
        from .opening import opened_ledger

        decision = decided(settings, reviewed_by, reason)
        with opened_ledger(os.environ, ledger) as store:
            return unholding(store, table, platform, decision, SystemClock().now)

    return answer("ops unhold", ledger, output, work)
