"""``dpone ledger project`` and ``rebuild``: the ledger as tables that anybody may query. Nothing is decided by them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from ...domain.errors import DponeError, ErrorCode, LedgerMissing
from .output import diagnose, format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from ...ledger.projections.following import Follower
    from ...ledger.projections.target import Mark

POLL_SECONDS: Final = 1.0
_AWAY_SECONDS_MAX: Final = 15.0
_PASSING: Final = (ErrorCode.LEDGER_UNREACHABLE, ErrorCode.CONNECTION_REFUSED, ErrorCode.STORAGE_FULL)

to_option = click.option(
    "--to",
    "to",
    required=True,
    metavar="URL",
    help="Where the tables are: sqlite:///absolute/path or postgresql://…/database[?schema=dpone_projection].",
)


@click.command("project", short_help="Bring tables for queries up to the ledger.")
@to_option
@click.option("--follow", is_flag=True, help="Go on for ever, as events arrive; end it with Ctrl-C or SIGTERM.")
@ledger_option
@format_option
def project(to: str, follow: bool, ledger: str | None, output: str) -> int:
    """Bring the tables operations, slots and timeline up to the ledger's end.

    Rows and position are written together: killed anywhere, the same command goes on. The tables are never read to make
    a decision. Passwords belong in PGPASSFILE, not into the URL.
    """
    if not follow:
        return _answer("ledger project", output, lambda: _project(ledger, to))
    return _answer("ledger project", output, lambda: _follow(ledger, to, output))


@click.command("rebuild", short_help="Drop such tables and make them again.")
@to_option
@ledger_option
@format_option
def rebuild(to: str, ledger: str | None, output: str) -> int:
    """Drop the tables of a projection and make them again from the ledger's first event."""
    return _answer("ledger rebuild", output, lambda: _project(ledger, to, anew=True))


def _answer(command: str, output: str, work: Callable[[], dict[str, Any]]) -> int:
    from ..runtime.execution import Interrupted
    from .interrupts import interruptible

    try:
        with interruptible():
            shown = work()
    except DponeError as error:
        print_failure(command, error, output)
        return error.exit_code
    except Interrupted as stop:
        print_failure(command, _stopped(stop), output)
        return stop.exit_code
    if output == "json":
        print_result(command, shown)
    else:
        write(f"{shown['projection']}: position {shown['position']:,}, {shown['events']:,} events projected now.")
    return 0


def _stopped(stop: Any) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"Stopped by {stop.signal_name}.",
        safe="The ledger is untouched; the tables hold what their position says.",
        next="Repeat the same command: it goes on from there.",
        exit_code=stop.exit_code,
    )


def _project(ledger: str | None, to: str, *, anew: bool = False) -> dict[str, Any]:
    with _opened(ledger, to) as follower:
        begun = follower.rebuild() if anew else follower.begin()
        return _shown(follower, begun, follower.catch_up(begun))


def _shown(follower: Follower, begun: Mark, mark: Mark) -> dict[str, Any]:
    return {
        "projection": follower.target.name,
        "position": mark.position,
        "events": mark.position - begun.position,
        "ledger_id": mark.ledger_id,
        "epoch": mark.epoch,
    }


@contextmanager
def _opened(ledger: str | None, to: str) -> Iterator[Follower]:
    from ...ledger.projections.following import Follower
    from ...ledger.projections.target import open_target
    from .opening import opened_ledger

    with closing(open_target(to)) as target, opened_ledger(os.environ, ledger) as store:
        yield Follower(store, target)


# ------------------------------------------------------------------------------------------------------- following


@dataclass(slots=True)
class _Outage:
    """What a follower waits for, and how long it waits before it looks again."""

    seconds: float = 0.0

    def began(self, error: DponeError) -> None:
        if not self.seconds:
            diagnose(error)
            write("Waiting for it to come back.", sys.stderr)
        self.seconds = min(max(POLL_SECONDS, 2 * self.seconds), _AWAY_SECONDS_MAX)
        time.sleep(self.seconds)

    def ended(self) -> None:
        if self.seconds:
            write("It is back.", sys.stderr)
        self.seconds = 0.0


def _follow(ledger: str | None, to: str, output: str) -> dict[str, Any]:
    if output == "json":
        raise DponeError(
            ErrorCode.REQUEST_INVALID,
            "What never ends has no document: --follow prints text only.",
            next="Leave --format json out, or leave --follow out and repeat the command from time to time.",
        )
    outage, started = _Outage(), False
    while True:
        try:
            with _opened(ledger, to) as follower:
                mark = follower.begin()
                write(f"Following into {follower.target.name} from position {mark.position:,}.")
                started = True
                _go_on(follower, mark, outage)
        except DponeError as error:
            if not started or not _may_pass(error):
                raise
            outage.began(error)


def _go_on(follower: Follower, mark: Mark, outage: _Outage) -> None:
    while True:
        further = follower.catch_up(mark)
        outage.ended()
        if further != mark:
            write(f"Position {further.position:,}.")
        mark = further
        time.sleep(POLL_SECONDS)


def _may_pass(error: DponeError) -> bool:
    """Whether it may end by itself: out of reach, locked, full. Not: another ledger, no right, something broken."""
    passing = getattr(error, "passing", None)
    if passing is not None:
        return bool(passing)
    return isinstance(error, LedgerMissing) or error.code in _PASSING
