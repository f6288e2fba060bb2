"""``dpone doctor``: does everything that a run needs work here?"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...domain.errors import DponeError, ErrorCode
from .output import diagnose, format_option, ledger_option, print_document, print_failure, print_result, write

if TYPE_CHECKING:
    from ..runtime.diagnosing import Finding

_MARKS = {"ok": "✔", "warning": "!", "problem": "✖"}


@click.command(short_help="Check this installation.")
@click.argument("manifest", type=click.Path(path_type=Path), required=False)
@click.option("--worker-pod", is_flag=True, help="Also check what a container that runs tasks must allow.")
@ledger_option
@format_option
def doctor(manifest: Path | None, worker_pod: bool, ledger: str | None, output: str) -> int:
    """Check versions, home, ledger, engine and whether the reader's process can be started and ended here.

    With MANIFEST also every connection that it names: is it bound, and does its server let us in?
    """
    from ..manifest.load import load_manifest
    from ..runtime.diagnosing import diagnose_connections, diagnose_installation
    from ..runtime.settings import settings_from

    try:
        settings = settings_from(os.environ, ledger)
        processes = load_manifest(manifest).processes if manifest is not None else ()
        findings = diagnose_installation(settings) + diagnose_connections(processes, settings)
        if worker_pod:
            from ..airflow.pod import Pod

            findings += Pod(settings).findings()
    except DponeError as error:
        print_failure("doctor", error, output)
        return error.exit_code
    problems = [finding for finding in findings if finding.status == "problem"]
    if output == "text":
        _print(findings)
    if not problems:
        if output == "json":
            print_result("doctor", {"items": [asdict(finding) for finding in findings]})
        return 0
    failed = DponeError(
        ErrorCode.REQUEST_INVALID,
        f"{len(problems)} problem{'s' if len(problems) > 1 else ''}: {problems[0].text}",
        next=problems[0].fix,
    )
    if output == "json":
        result = {"status": "error", "error_code": failed.code.value, "errors": [item.text for item in problems]}
        items = [asdict(finding) for finding in findings]
        print_document({"command": "doctor", "passed": False, "result": {**result, "items": items}})
    diagnose(failed)
    return failed.exit_code


def _print(findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        write(f"{_MARKS[finding.status]} {finding.check:<10} {finding.text}")
        if finding.fix is not None:
            write(f"  {'':<10} → {finding.fix}")
