"""``dpone ops sweep``: what stands beside the targets, and dropping what the ledger proves to be unused."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError
from .deciding import addressed, platform_option
from .output import format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from ..runtime.compose import Composer
    from ..runtime.reviewing.sweeping import Swept, Table


@click.command("sweep", short_help="Drop what the ledger proves to be unused.")
@click.argument("table", metavar="[DATABASE.TABLE]", required=False)
@click.option("--yes", is_flag=True, help="Drop without asking.")
@platform_option
@ledger_option
@format_option
@click.pass_obj
def sweep(
    composer: Composer | None, table: str | None, yes: bool, platform: str | None, ledger: str | None, output: str
) -> int:
    """List the tables beside DATABASE.TABLE, or beside every target, and drop those that this ledger made and nobody
    uses: by identity, after asking. The rest is listed with why it is left.
    """
    from ..runtime.compose import compose
    from ..runtime.reviewing.sweeping import drop, listed
    from ..runtime.settings import settings_from
    from .opening import opened_ledger

    swept: list[Swept] = []
    try:
        settings, composing = settings_from(os.environ, ledger), composer or compose
        with opened_ledger(os.environ, ledger) as store:
            tables = listed(store, table, platform, settings, composing)
            if output == "text":
                _show(tables)
            if _confirmed(tables, yes, output):
                swept = list(drop(store, tables, settings, composing))
    except DponeError as error:
        addressed(error, ledger)
        print_failure("ops sweep", error, output)
        return error.exit_code
    if output == "json":
        print_result("ops sweep", {"items": _items(tables, swept)})
    for one in swept if output == "text" else ():
        write(f"{'✔' if one.outcome == 'dropped' else '✖'} {one.outcome} {one.table.shown} {one.reason or ''}".rstrip())
    return 0


def _show(tables: list[Table]) -> None:
    for one in tables:
        write(f"  {one.shown}: {'left, ' + one.left if one.left is not None else 'may be dropped'}")
    if not tables:
        write("Nothing stands beside the targets.")


def _confirmed(tables: list[Table], yes: bool, output: str) -> bool:
    droppable = sum(one.left is None for one in tables)
    if not droppable or yes:
        return droppable > 0
    if output == "json" or not sys.stdin.isatty():
        return False
    try:
        return click.confirm(f"Drop {droppable} table{'s' if droppable != 1 else ''}?", default=False)
    except click.Abort:
        return False  # the end of the input is no yes


def _items(tables: list[Table], swept: list[Swept]) -> list[dict[str, Any]]:
    outcomes = {one.table.shown: one for one in swept}
    items = []
    for table in tables:
        done = outcomes.get(table.shown)
        item: dict[str, Any] = {"table": table.shown, "target": str(table.target), "action": "left"}
        if table.left is not None:
            item["reason"] = table.left
        elif done is None:
            item["action"] = "may be dropped"
        else:
            item["action"] = done.outcome
            if done.reason is not None:
                item["reason"] = done.reason
        items.append(item)
    return items
