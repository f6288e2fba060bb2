"""``dpone audit``: check the ledger without trusting it."""

from __future__ import annotations

import os

import click

from ...domain.errors import DponeError, ErrorCode
from .output import diagnose, format_option, ledger_option, print_document, print_failure, print_result, write

_FINDINGS_SHOWN = 20


@click.group(short_help="Verify the ledger.")
def audit() -> None:
    """Verify the ledger: every stream's chain, and that every history is one that the protocol allows."""


@audit.command("verify", short_help="Check every event's bytes, every chain, every history.")
@ledger_option
@format_option
def verify(ledger: str | None, output: str) -> int:
    """Read the whole ledger in order and check everything that it can prove about itself.

    A tail that was cut off cannot be seen from the ledger alone.
    """
    from ...domain.history import illegality
    from ...ledger.verify import verify_ledger
    from .opening import opened_ledger

    try:
        with opened_ledger(os.environ, ledger) as store:
            report = verify_ledger(store, illegality)
    except DponeError as error:
        print_failure("audit verify", error, output)
        return error.exit_code
    result = {
        "events": report.events,
        "streams": report.streams,
        "findings": [str(finding) for finding in report.findings],
    }
    if report.passed:
        if output == "json":
            print_result("audit verify", result)
        else:
            write(f"✔ {report.events:,} events in {report.streams:,} streams: every chain and every history holds.")
        return 0
    broken = DponeError(
        ErrorCode.EVIDENCE_INVALID,
        f"The ledger does not hold: {len(report.findings)} finding(s), the first: {report.findings[0]}",
        safe="Nothing was changed. No operation of a broken stream can go on.",
        next="Compare with a backup of the ledger; keep this file for the investigation.",
        errors=tuple(str(finding) for finding in report.findings[:_FINDINGS_SHOWN]),
    )
    if output == "json":
        failed = {"status": "error", "error_code": broken.code.value, "errors": list(broken.errors), **result}
        print_document({"command": "audit verify", "passed": False, "result": failed})
    diagnose(broken)
    return broken.exit_code
