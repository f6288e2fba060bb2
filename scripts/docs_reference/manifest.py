"""The manifest's fields, from the shapes that check them; defaults from the values that they become."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from dpone.adapters.manifest.grammar import KINDS
from dpone.adapters.manifest.json_schemas import json_schema, of_shape
from dpone.adapters.manifest.process_shapes import ProcessShape
from dpone.adapters.manifest.quality_shapes import QualityShape
from dpone.domain.process import AcceptanceSpec, SinkSpec, SourceType, default_options
from dpone.domain.quality import GATES
from dpone.domain.types import INTEGER_BITS, SUPPORTED

from .meanings import MEANINGS
from .pages import plain, table


def kinds() -> str:
    """The kinds of manifest and their outermost fields."""
    sections = []
    for name, shape in KINDS.items():
        schema = json_schema(name)
        required = schema.get("required", [])
        rows = [
            (f"`{key}`", "yes" if key in required else "", MEANINGS[f"{name}: {key}"]) for key in schema["properties"]
        ]
        sections.append(f"### `{name}`\n\n{plain(shape.__doc__)}\n\n{table(('field', 'required', 'meaning'), rows)}")
    return "\n\n".join(sections)


def process() -> str:
    """The fields of a process, quality left out."""
    schema = of_shape(ProcessShape())
    del schema["properties"]["quality"]
    return _fields(schema)


def quality() -> str:
    """The fields of ``quality``, and what each gate type demands."""
    gates = [(f"`{name}`", plain(type(gate).__doc__), f"`{gate.version}`") for name, gate in GATES.items()]
    return f"{_fields(of_shape(QualityShape()), 'quality.')}\n\n{table(('gate type', 'passes when', 'version'), gates)}"


def types() -> str:
    """The accepted column types."""
    integers = ", ".join(f"`{name}`" for name in INTEGER_BITS)
    return f"Accepted: {SUPPORTED}.\n\nWhole numbers are {integers}."


def _fields(schema: Mapping[str, Any], prefix: str = "") -> str:
    defaults = _defaults()
    rows = [
        (f"`{path}`", accepts, required or defaults.get(path, ""), MEANINGS[path])
        for path, accepts, required in _leaves(schema, prefix)
    ]
    return table(("field", "accepts", "required, or default", "meaning"), rows)


def _leaves(schema: Mapping[str, Any], prefix: str, within: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, what is accepted, and whether it must be there. ``within`` is the optional mapping around it, if any."""
    required = schema.get("required", ())
    for name, inner in schema["properties"].items():
        path = f"{prefix}{name}"
        optional = within if name in required else path
        if "properties" in inner:
            yield from _leaves(inner, f"{path}.", optional)
        elif inner.get("type") == "array" and "properties" in inner["items"]:
            yield from _leaves(inner["items"], f"{path}[].", optional)
        else:
            yield path, _accepts(inner), "" if name not in required else f"with `{within}`" if within else "yes"


def _accepts(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    match schema["type"]:
        case "boolean":
            return "true or false"
        case "integer":
            return f"{schema['minimum']:,} to {schema['maximum']:,}"
        case "number":
            return "number, zero or more"
        case "array":
            return f"list of at most {schema['maxItems']:,}, each once"
        case "object":
            return "mapping of column name to type, in the table's order"
        case _:
            if schema["maxLength"] == 1:
                return "one character"
            return f"text of {schema['minLength']} to {schema['maxLength']:,} characters"


def _defaults() -> dict[str, str]:
    sink = {name: item.default for name, item in inspect.signature(SinkSpec).parameters.items()}
    acceptance = AcceptanceSpec()
    storage = "sink.options.physical_design.storage.clickhouse"
    found: dict[str, Any] = {f"source.options.{name}": value for name, value in default_options(SourceType.CSV).items()}
    found |= {
        "sink.schema_change": sink["schema_change"].value,
        "sink.strategy.max_source_bytes": sink["max_source_bytes"],
        "sink.strategy.keep_generations": sink["keep_generations"],
        "sink.options.durable_quality_replay": sink["durable"],
        "sink.options.lineage": sink["lineage"],
        f"{storage}.engine": sink["engine"],
        f"{storage}.order_by": sink["order_by"],
        "quality.acceptance.mode": acceptance.mode.value,
        "quality.acceptance.capture.source": acceptance.capture_source,
        "quality.acceptance.capture.staged": acceptance.capture_staged,
        "quality.acceptance.capture.target": acceptance.capture_target,
        "quality.acceptance.checks.row_count": acceptance.row_count,
        "quality.acceptance.checks.null_counts": acceptance.null_counts,
        "quality.acceptance.checks.distinct_counts": acceptance.distinct_counts,
        "quality.gates[].severity": "error",
    }
    return {path: f"`{_shown(value)}`" for path, value in found.items()}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    return f"{value:,}" if isinstance(value, int) else str(value)
