"""``dpone plan``: what a run would read, create, swap and observe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError
from .output import format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from ..runtime.compose import Composer


@click.command(short_help="Show what a run would do.")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--selector", metavar="S", help="Only this process; without it, all of them.")
@click.option("--dag-id", metavar="D", help="As for run.")
@click.option("--run-id", metavar="R", help="As for run.")
@click.option("--connect", is_flag=True, help="Also ask source and platform; takes the engine's folder for a moment.")
@ledger_option
@format_option
@click.pass_obj
def plan(
    composer: Composer | None,
    manifest: Path,
    selector: str | None,
    dag_id: str | None,
    run_id: str | None,
    connect: bool,
    ledger: str | None,
    output: str,
) -> int:
    """Show what running MANIFEST would read, create, swap and observe. Nothing is read or changed."""
    from ..manifest.load import load_manifest
    from ..runtime.planning import plan as planned
    from ..runtime.settings import identity_from, settings_from

    try:
        loaded = load_manifest(manifest)
        processes = loaded.processes if selector is None else (loaded.select(selector),)
        identity = identity_from(os.environ, dag_id, run_id)
        settings = settings_from(os.environ, ledger)
        items = [planned(process, identity, settings) for process in processes]
        if connect:
            from ..runtime.compose import compose
            from ..runtime.planning import connected
            from .progress import Quiet

            for item, process in zip(items, processes, strict=True):
                item["connected"] = connected(process, identity, settings, composer or compose, Quiet())
    except DponeError as error:
        print_failure("plan", error, output)
        return error.exit_code
    if output == "json":
        print_result("plan", {"manifest": str(manifest), "items": items})
        return 0
    for item in items:
        _print(item)
    return 0


def _print(item: dict[str, Any]) -> None:
    key = item["key"]
    write(f"{item['selector']}      dag {key['dag_id']} · run {key['run_id']} · process {key['process']}")
    rows = {name: value for name, value in item.items() if name not in ("selector", "key")}
    for name, value in rows.items():
        write(f"  {name:<18} {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name} {_shown(part)}" for name, part in value.items() if part not in (None, [], {}))
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
