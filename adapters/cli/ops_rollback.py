"""``dpone ops rollback``: publish a kept generation again, as a new one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ...domain.errors import DponeError, ErrorCode
from .deciding import addressed, decided, platform_option
from .output import format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from ..runtime.compose import Composer
    from ..runtime.execution import Execution


@click.command("rollback", short_help="Publish a kept generation again, as a new one.")
@click.argument("table", metavar="DATABASE.TABLE")
@click.option("--to", "generation", metavar="GENERATION", help="Its id, or 8 or more characters. Without: list them.")
@click.option("--reviewed-by", metavar="NAME", help="Who decided; it is recorded.")
@click.option("--reason", metavar="TEXT", help="Why; it is recorded.")
@platform_option
@ledger_option
@format_option
@click.pass_obj
def rollback(
    composer: Composer | None,
    table: str,
    generation: str | None,
    reviewed_by: str | None,
    reason: str | None,
    platform: str | None,
    ledger: str | None,
    output: str,
) -> int:
    """Copy a kept generation of DATABASE.TABLE into a new one and publish that, by an ordinary operation.

    Repeat the same command after any interruption. Without --to the kept generations are listed.
    """
    if generation is None:
        return _list(table, platform, ledger, output)
    from .executing import execute

    wanted = generation

    def prepare() -> Execution:
        from ..runtime.compose import compose
        from ..runtime.reviewing.rolling_back import rollback as rolling_back
        from ..runtime.settings import settings_from
        from .opening import opened_ledger
        from .progress import reporter

        settings = settings_from(os.environ, ledger)
        if (reviewed_by is None) != (reason is None):
            raise DponeError(
                ErrorCode.REQUEST_INVALID, "--reviewed-by and --reason go together.", next="Give both, or none."
            )
        made = decided(settings, reviewed_by, reason) if reviewed_by is not None and reason is not None else None
        try:
            with opened_ledger(os.environ, ledger) as store:
                return rolling_back(
                    store, table, wanted, platform, made, settings, composer or compose, reporter(output)
                )
        except DponeError as error:
            addressed(error, ledger)
            raise

    return execute(prepare, output)


def _list(table: str, platform: str | None, ledger: str | None, output: str) -> int:
    from ..runtime.reviewing.rolling_back import kept_generations
    from .opening import opened_ledger

    try:
        with opened_ledger(os.environ, ledger) as store:
            items = kept_generations(store, table, platform)
    except DponeError as error:
        addressed(error, ledger)
        print_failure("ops rollback", error, output)
        return error.exit_code
    if output == "json":
        print_result("ops rollback", {"items": items})
        return 0
    for item in items:
        what = "live" if item["live"] else "kept"
        write(f"{item['generation']}  {what}  {item['rows']:,} rows{'  adopted' if item['adopted'] else ''}")
    return 0
