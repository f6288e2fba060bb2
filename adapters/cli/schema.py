"""``dpone schema``: the JSON Schema of a manifest kind, for editors and for other programs."""

from __future__ import annotations

import json

import click

from ...domain.errors import DponeError
from .output import print_failure, write_block


@click.command(short_help="Print the JSON Schema of a manifest kind.")
@click.argument("kind")
@click.option("--format", "output", type=click.Choice(("text", "json")), default="json", help="Both print the schema.")
def schema(kind: str, output: str) -> int:
    """Print the JSON Schema of KIND: batch, flow or flow-fragment. The schema itself is the document."""
    from ..manifest.json_schemas import json_schema

    try:
        shown = json_schema(kind)
    except DponeError as error:
        print_failure("schema", error, output)
        return error.exit_code
    write_block(json.dumps(shown, indent=2 if output == "text" else None, ensure_ascii=False))
    return 0
