"""``dpone ledger``: what whoever keeps the store does: look at it, move it, take a backup into use."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError, ErrorCode
from ...domain.identity import identity_problem
from .ledger_project import project, rebuild
from .output import format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from ...ledger.migrating import Moved
    from ...ledger.recorder import LedgerIdentity
    from ...ledger.store import EventLedger
    from ..runtime.answering import PlatformMarkers
    from ..runtime.settings import Settings


@click.group(short_help="Keep the ledger's store.")
def ledger() -> None:
    """Keep the ledger's store: status, migrate, restore; and its projections: project, rebuild."""


for _command in (project, rebuild):
    ledger.add_command(_command)


@ledger.command("status", short_help="Which ledger this is, and who answers to it.")
@ledger_option
@format_option
def status(ledger: str | None, output: str) -> int:
    """Show the ledger's id, epoch and size, whether it is sealed, and the platforms that it knows."""

    def work(settings: Settings) -> dict[str, Any]:
        with _opened(settings) as store:
            return _status(store, settings)

    return _answer("ledger status", ledger, output, work, _print_status)


@ledger.command("migrate", short_help="Move a ledger to another store.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--connection", metavar="REF", help="A connection to the cluster that answers to this ledger.")
@format_option
def migrate(source: str, target: str, connection: str | None, output: str) -> int:
    """Move the ledger FROM one URL TO another: seal, copy byte for byte, check, raise the epoch.

    Passwords belong in PGPASSFILE or DPONE_KEEPER_AUTH_FILE, not into the URLs. Killed anywhere, the same command goes
    on.
    """

    def work(settings: Settings) -> dict[str, Any]:
        from ...ledger.migrating import migrate as moving

        with _opened(settings) as store:
            markers = _markers(settings, store, connection)
            _check_shared(markers, target)
            moved = moving(store, lambda identity: _copy(settings, target, identity), markers, _legality())
        return _moved(moved, markers)

    return _answer("ledger migrate", source, output, work, lambda shown: _print_moved("Moved", shown))


@ledger.command("restore", short_help="Take a backup of the ledger into use.")
@click.option("--reviewed-by", required=True, metavar="NAME", help="Who decided; it is recorded.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")
@click.option("--connection", metavar="REF", help="A connection to the cluster that answers to this ledger.")
@ledger_option
@format_option
def restore(reviewed_by: str, reason: str, connection: str | None, ledger: str | None, output: str) -> int:
    """Take the ledger that stands at the URL, a backup, into use: check it, raise its epoch above every other."""

    def work(settings: Settings) -> dict[str, Any]:
        from ...ledger.migrating import restore as restoring

        _check_review(reviewed_by, reason)
        with _opened(settings) as store:
            markers = _markers(settings, store, connection, reviewed_by)
        return _moved(restoring(lambda: _opened(settings), markers, _legality(), reason), markers)

    return _answer("ledger restore", ledger, output, work, lambda shown: _print_moved("Restored", shown))


def _answer(
    command: str,
    url: str | None,
    output: str,
    work: Callable[[Settings], dict[str, Any]],
    print_text: Callable[[dict[str, Any]], None],
) -> int:
    from ..runtime.settings import settings_from

    try:
        shown = work(settings_from(os.environ, url))
    except DponeError as error:
        print_failure(command, error, output)
        return error.exit_code
    if output == "json":
        print_result(command, shown)
    else:
        print_text(shown)
    return 0


def _opened(settings: Settings) -> EventLedger:
    from ...ledger.store import open_ledger
    from ..connections.sql import connect_by

    return open_ledger(settings.ledger_url, create=False, connect=connect_by(settings))


def _copy(settings: Settings, url: str, identity: LedgerIdentity) -> EventLedger:
    from ...ledger.store import open_ledger
    from ..connections.sql import connect_by

    return open_ledger(url, create=True, connect=connect_by(settings), identity=identity)


def _legality() -> Any:
    from ...domain.history import illegality

    return illegality


def _markers(
    settings: Settings, store: EventLedger, connection: str | None, reviewed_by: str | None = None
) -> PlatformMarkers:
    from ..authority.memory import all_platforms
    from ..runtime.answering import PlatformMarkers
    from ..runtime.compose import SystemClock

    bound = settings.connection(connection) if connection is not None else None
    return PlatformMarkers(settings, all_platforms(store), bound, SystemClock().now, reviewed_by)


def _check_shared(markers: PlatformMarkers, target: str) -> None:
    clusters = [one.cluster for one in markers.platforms if one.cluster is not None]
    if clusters and target.startswith("sqlite:"):
        raise DponeError(
            ErrorCode.LEDGER_NOT_SHARED,
            f"The cluster {clusters[0]} answers to this ledger, and its machines cannot share an SQLite file.",
            next="Move it to keeper://…, keepermap://… or postgresql://…",
        )


def _check_review(reviewed_by: str, reason: str) -> None:
    for name, value in (("--reviewed-by", reviewed_by), ("--reason", reason)):
        problem = identity_problem(f"value of {name}", value)
        if problem is not None:
            raise DponeError(ErrorCode.REQUEST_INVALID, problem, next=f"Give {name} 1 to 250 printable characters.")


def _status(store: EventLedger, settings: Settings) -> dict[str, Any]:
    from ..authority.memory import all_platforms

    found = store.recorder.identity()
    return {
        "ledger_id": found.ledger_id,
        "epoch": found.epoch,
        "format": found.format,
        "sealed": found.sealed,
        "store": settings.ledger_url.partition("://")[0],
        "name": store.recorder.name,
        "events": store.position(),
        "platforms": [
            {"platform_id": one.platform_id, "kind": one.kind, "cluster": one.cluster, "epoch": one.epoch}
            for one in all_platforms(store)
        ],
    }


def _moved(moved: Moved, markers: PlatformMarkers) -> dict[str, Any]:
    return {
        "ledger_id": moved.ledger_id,
        "epoch": moved.epoch,
        "events": moved.events,
        "copied": moved.copied,
        "platforms": [one.platform_id for one in markers.platforms],
        "markers_raised": moved.markers,
        "elsewhere": list(markers.elsewhere()),
    }


def _print_status(shown: dict[str, Any]) -> None:
    write(f"Ledger {shown['name']} ({shown['store']}): {shown['events']:,} events, epoch {shown['epoch']}.")
    write(f"  id {shown['ledger_id']}, format {shown['format']}")
    if shown["sealed"]:
        write("  sealed: it was moved, and takes no more events; its successor is the ledger now")
    for one in shown["platforms"]:
        what = one["kind"] if one["cluster"] is None else f"cluster {one['cluster']}"
        write(f"  platform {one['platform_id']} ({what}), at epoch {one['epoch']}")


def _print_moved(done: str, shown: dict[str, Any]) -> None:
    copied = f", {shown['copied']:,} of them copied now" if done == "Moved" else ""
    write(f"{done}: {shown['events']:,} events{copied}; every platform answers to epoch {shown['epoch']}.")
    for platform_id in shown["elsewhere"]:
        write(f"  platform {platform_id} lies in another home: repeat this command with its DPONE_HOME")
    if done == "Moved":
        write("The old ledger is sealed. Set DPONE_LEDGER, or --ledger, to the new one.")
