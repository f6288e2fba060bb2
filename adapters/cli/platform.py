"""``dpone platform``: what a platform owner does, from an empty cluster to an admitted one, and afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...domain.errors import DponeError
from ...domain.identity import identity_problem
from .output import format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from ..authority.admit import Plan
    from ..authority.asked import Answer, Asked, OpenLedger
    from ..runtime.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[["Asked", "OpenLedger", "Settings"], "Answer"]


@click.group(short_help="Let a cluster hold targets.")
def platform() -> None:
    """Let a replicated cluster hold targets: in this order provision, attest, admit; then runs may publish to it."""


def _which(command: F) -> F:
    """The options that say which cluster is meant."""
    command = click.option("--cluster", required=True, metavar="NAME", help="The cluster, as its servers call it.")(
        command
    )
    return click.option("--connection", required=True, metavar="REF", help="A connection to any server of it.")(command)


def _keeper(command: F) -> F:
    return click.option(
        "--keeper", metavar="HOST:PORT,…", help="The cluster's Keeper; default: the ledger's, when that is one."
    )(command)


def _review(command: F) -> F:
    """The options that say who decided, and why."""
    command = click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")(command)
    return click.option("--reviewed-by", required=True, metavar="NAME", help="Who decided; it is recorded.")(command)


@platform.command(short_help="Write the marker to every replica and record the platform.")
@click.option("--database", "databases", multiple=True, metavar="NAME", help="Repeatable. Default: all databases.")
@_which
@_keeper
@ledger_option
@format_option
def provision(
    connection: str, cluster: str, keeper: str | None, databases: tuple[str, ...], ledger: str | None, output: str
) -> int:
    """Let the cluster answer to the ledger: creates the ledger where it is new, the database dpone_authority and the
    marker on each replica, and reads everything back.

    With --database the platform owns these databases only, so that another ledger may own others.
    """
    from ..authority.provision import provision as work

    return _done(
        "platform provision", connection, cluster, ledger, output, lambda asked, open_, _: work(asked, open_, databases)
    )


@platform.command(short_help="Prove that all replicas share one Keeper.")
@_which
@_keeper
@ledger_option
@format_option
def attest(connection: str, cluster: str, keeper: str | None, ledger: str | None, output: str) -> int:
    """Write a node through the Keeper and let every replica show it; record what was seen."""
    from ..authority.attest import attest as work

    def run(asked: Asked, open_ledger: OpenLedger, settings: Settings) -> Answer:
        return work(asked, open_ledger, _keeper_of(keeper, settings), settings.environ)

    return _done("platform attest", connection, cluster, ledger, output, run)


@platform.command(short_help="Admit the cluster's replicas as they are now.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_which
@_keeper
@ledger_option
@format_option
def admit(connection: str, cluster: str, keeper: str | None, yes: bool, ledger: str | None, output: str) -> int:
    """Show what is about to be admitted, ask, and record it. A replica that comes is prepared first: the marker, and
    every live table.
    """
    from ..authority.admit import admit as work

    def run(asked: Asked, open_ledger: OpenLedger, _: Settings) -> Answer:
        return work(asked, open_ledger, lambda plan: yes or _confirmed(plan, output))

    return _done("platform admit", connection, cluster, ledger, output, run)


@platform.command(short_help="Take one replica out of the inventory.")
@click.argument("replica")
@_review
@_which
@_keeper
@ledger_option
@format_option
def exclude(
    replica: str,
    connection: str,
    cluster: str,
    keeper: str | None,
    reviewed_by: str,
    reason: str,
    ledger: str | None,
    output: str,
) -> int:
    """Go on without REPLICA, which need not answer. It comes back only through admit."""
    from ..authority.exclusion import exclude as work

    def run(asked: Asked, open_ledger: OpenLedger, _: Settings) -> Answer:
        _check_review(reviewed_by, reason)
        return work(asked, open_ledger, replica, reviewed_by, reason)

    return _done("platform exclude", connection, cluster, ledger, output, run)


@platform.command(short_help="Take every replica out of the inventory.")
@_review
@_which
@_keeper
@ledger_option
@format_option
def revoke(
    connection: str, cluster: str, keeper: str | None, reviewed_by: str, reason: str, ledger: str | None, output: str
) -> int:
    """Stop publishing to the cluster until its replicas are admitted again."""
    from ..authority.exclusion import revoke as work

    def run(asked: Asked, open_ledger: OpenLedger, _: Settings) -> Answer:
        _check_review(reviewed_by, reason)
        return work(asked, open_ledger, reviewed_by, reason)

    return _done("platform revoke", connection, cluster, ledger, output, run)


@platform.command(short_help="Take a target over as all replicas show it.")
@click.argument("table", metavar="DATABASE.TABLE")
@_review
@_which
@_keeper
@ledger_option
@format_option
def adopt(
    table: str,
    connection: str,
    cluster: str,
    keeper: str | None,
    reviewed_by: str,
    reason: str,
    ledger: str | None,
    output: str,
) -> int:
    """Let DATABASE.TABLE be published over although this ledger did not publish what is there: a table of somebody
    else, an altered one, or none where one was. An adopted table is never dropped by itself.
    """
    from ..authority.adopt import Review
    from ..authority.adopt import adopt as work

    def run(asked: Asked, open_ledger: OpenLedger, _: Settings) -> Answer:
        _check_review(reviewed_by, reason)
        return work(asked, open_ledger, table, Review(reviewed_by, reason))

    return _done("platform adopt", connection, cluster, ledger, output, run)


@platform.command(short_help="What was admitted beside what is there.")
@_which
@_keeper
@ledger_option
@format_option
def status(connection: str, cluster: str, keeper: str | None, ledger: str | None, output: str) -> int:
    """Show every replica as it was admitted and as it is now. Changes nothing."""
    from ..authority.status import status as work

    try:
        asked, open_ledger, _ = _asked(connection, cluster, ledger)
        shown = work(asked, open_ledger)
    except DponeError as error:
        print_failure("platform status", error, output)
        return error.exit_code
    if output == "json":
        print_result("platform status", shown)
    else:
        _print_status(shown)
    return 0


# ---------------------------------------------------------------------------------------------------------- inside


def _done(command: str, connection: str, cluster: str, ledger: str | None, output: str, work: Work) -> int:
    try:
        answer = work(*_asked(connection, cluster, ledger))
    except DponeError as error:
        print_failure(command, error, output)
        return error.exit_code
    if output == "json":
        print_result(command, {**answer.result, "changes": list(answer.changes)})
        return 0
    for change in answer.changes or ("Nothing changed: it was so already.",):
        write(f"✔ {change}")
    return 0


def _asked(connection: str, cluster: str, ledger: str | None) -> tuple[Asked, OpenLedger, Settings]:
    from ..authority.asked import Asked
    from ..authority.opening import open_shared, require_shared
    from ..connections.resolving import resolve
    from ..runtime.compose import SystemClock
    from ..runtime.settings import settings_from

    settings = settings_from(os.environ, ledger)
    require_shared(settings.ledger_url)
    asked = Asked(resolve(connection, settings.environ), cluster, settings.by, SystemClock().now)
    return asked, lambda create: open_shared(settings, create), settings


def _keeper_of(option: str | None, settings: Settings) -> str:
    """What was typed, or the servers of a ledger that lies in Keeper. Raises DponeError (REQUEST_INVALID)."""
    from ..authority.refusals import invalid

    if option:
        return option
    scheme, _, rest = settings.ledger_url.partition("://")
    if scheme == "keeper":
        return rest.partition("/")[0]
    raise invalid("The ledger is not in a Keeper, so the cluster's must be named.", "Add --keeper HOST:PORT,…")


def _check_review(reviewed_by: str, reason: str) -> None:
    from ..authority.refusals import invalid

    for name, value in (("--reviewed-by", reviewed_by), ("--reason", reason)):
        problem = identity_problem(f"value of {name}", value)
        if problem is not None:
            raise invalid(problem, f"Give {name} 1 to 250 printable characters.")


def _confirmed(plan: Plan, output: str) -> bool:
    from ..authority.refusals import invalid

    if output == "json":
        raise invalid("Nobody can be asked while one JSON document is printed.", "Add --yes.")
    new = set(plan.new)
    write(f"Cluster {plan.cluster}: one shard; internal replication {plan.internal_replication}.")
    rows = [
        (one.name, "new" if one.name in new else "admitted", one.version, _macros(one.macros)) for one in plan.replicas
    ]
    _print_table(("replica", "state", "version", "macros"), rows)
    if plan.targets and plan.new:
        write(f"Every new replica gets {len(plan.targets)} live table(s): {', '.join(plan.targets[:20])}")
    try:
        return click.confirm("Admit this inventory?", default=False)
    except click.Abort:
        return False  # the end of the input is no yes


def _print_status(shown: dict[str, Any]) -> None:
    databases = shown["databases"]
    owned = "all databases" if databases == "all" else "databases " + ", ".join(databases)
    write(f"Cluster {shown['cluster']}: platform {shown['platform_id']}, {owned}, ledger epoch {shown['epoch']}.")
    rows = [
        (
            item["replica"],
            item["state"],
            {True: "yes", False: "no", None: "—"}[item["reachable"]],
            item["version"],
            item["version_now"],
            item["marker"],
            item["keeper"],
        )
        for item in shown["items"]
    ]
    _print_table(("replica", "state", "answers", "version admitted", "version now", "marker", "keeper"), rows)
    for sentence in shown["differences"]:
        write(f"  ✖ {sentence}")
    if shown["next"] is not None:
        write(f"Next: {shown['next']}")
    if shown["agrees"]:
        write("  ✔ Everything is as it was admitted.")


def _macros(macros: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(macros.items()))


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from .output import printable

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else 1000).print(table)
