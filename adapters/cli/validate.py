"""``dpone validate``: is the manifest understood? Touches nothing, imports no engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...domain.configuration import Process, semantic, semantic_digest
from ...domain.errors import DponeError
from .output import format_option, print_failure, print_result, write


@click.command(short_help="Check a manifest without touching anything.")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--selector", metavar="S", help="Show only this process; all are checked either way.")
@format_option
def validate(manifest: Path, selector: str | None, output: str) -> int:
    """Check MANIFEST and show what each process reads and writes."""
    from ..manifest.load import load_manifest

    try:
        loaded = load_manifest(manifest)
        processes = loaded.processes if selector is None else (loaded.select(selector),)
        items = [_item(process) for process in processes]
    except DponeError as error:
        print_failure("validate", error, output)
        return error.exit_code
    if output == "json":
        print_result("validate", {"manifest": str(manifest), "kind": loaded.kind, "items": items})
        return 0
    for item in items:
        write(f"✔ {item['selector']}: {item['source']} → {item['target']}   {item['semantic_digest'][:19]}…")
    return 0


def _item(process: Process) -> dict[str, Any]:
    return {
        "selector": process.selector,
        "process": process.name,
        "source": process.source.type.value,
        "target": f"{process.sink.database}.{process.sink.table}",
        "durable": process.sink.durable,
        "semantic_digest": semantic_digest(semantic(process)),
    }
