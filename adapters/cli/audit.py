"""``dpone audit``: check the ledger without trusting it, and replay what it says."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError, ErrorCode
from .audit_replay import replay
from .output import diagnose, format_option, ledger_option, print_document, print_failure, print_result, write

if TYPE_CHECKING:
    from ...ledger.projections.checking import ProjectionReport
    from ...ledger.store import EventLedger

_FINDINGS_SHOWN = 20


@click.group(short_help="Verify the ledger, and replay what it says.")
def audit() -> None:
    """Verify the ledger: every stream's chain, and that every history is one that the protocol allows; replay one."""


audit.add_command(replay)


@audit.command("verify", short_help="Check every event's bytes, every chain, every history.")
@click.option("--projection", metavar="URL", help="Hold this projection's position and rows against the ledger, too.")
@ledger_option
@format_option
def verify(projection: str | None, ledger: str | None, output: str) -> int:
    """Read the whole ledger in order and check everything that it can prove about itself.

    A tail that was cut off cannot be seen from the ledger alone.
    """
    from ...domain.history import illegality
    from ...ledger.verify import verify_ledger
    from .opening import opened_ledger

    try:
        with opened_ledger(os.environ, ledger) as store:
            report = verify_ledger(store, illegality)
            projected = _projected(store, projection) if projection is not None and report.passed else None
    except DponeError as error:
        print_failure("audit verify", error, output)
        return error.exit_code
    result: dict[str, Any] = {
        "events": report.events,
        "streams": report.streams,
        "findings": [str(finding) for finding in report.findings],
    }
    if projected is not None:
        result["projection"] = {
            "position": projected.position,
            "rows": projected.rows,
            "findings": list(projected.findings),
        }
        if report.passed and not projected.passed:
            return _fail(_differs(projected), result, output)
    if report.passed:
        if output == "json":
            print_result("audit verify", result)
        else:
            write(f"✔ {report.events:,} events in {report.streams:,} streams: every chain and every history holds.")
            if projected is not None:
                where = f"position {projected.position:,}"
                write(f"✔ {projected.rows:,} rows of the projection at {where}: equal to rebuilt ones.")
        return 0
    broken = DponeError(
        ErrorCode.EVIDENCE_INVALID,
        f"The ledger does not hold: {len(report.findings)} finding(s), the first: {report.findings[0]}",
        safe="Nothing was changed. No operation of a broken stream can go on.",
        next="Compare with a backup of the ledger; keep this file for the investigation.",
        errors=tuple(str(finding) for finding in report.findings[:_FINDINGS_SHOWN]),
    )
    return _fail(broken, result, output)


def _projected(store: EventLedger, url: str) -> ProjectionReport:
    from ...ledger.projections.checking import check_projection
    from ...ledger.projections.target import open_target

    with closing(open_target(url)) as target:
        return check_projection(store, target)


def _differs(report: ProjectionReport) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_MISMATCH,
        f"The projection differs from the ledger: {len(report.findings)} finding(s), the first: {report.findings[0]}",
        safe="The ledger holds, and nothing is ever decided by a projection.",
        next="dpone ledger rebuild --to URL",
        errors=report.findings[:_FINDINGS_SHOWN],
    )


def _fail(error: DponeError, result: dict[str, Any], output: str) -> int:
    if output == "json":
        failed = {"status": "error", "error_code": error.code.value, "errors": list(error.errors), **result}
        print_document({"command": "audit verify", "passed": False, "result": failed})
    diagnose(error)
    return error.exit_code
