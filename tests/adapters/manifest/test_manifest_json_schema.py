"""The editors' schemas say what the loader says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.manifest import json_schema
from dpone.adapters.manifest.yaml import parse
from dpone.domain.errors import DponeError

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*/*.yaml"))
TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": int}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """As much of JSON Schema as these schemas use."""
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return False
    if isinstance(value, list):
        return all(fits(item, schema["items"]) for item in value)
    if not isinstance(value, dict):
        return True
    known, rest = schema.get("properties", {}), schema["additionalProperties"]
    return all(key in value for key in schema.get("required", ())) and all(
        fits(item, known[key]) if key in known else bool(rest) and fits(item, rest) for key, item in value.items()
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_fit_their_schema_and_misspellings_do_not(path: Path) -> None:
    value = parse(path.read_text(), path.name).value
    schema = json_schema(value["kind"])

    assert fits(value, schema)
    assert not fits({**value, "kinds": 1}, schema)
    assert not fits({key: item for key, item in value.items() if key not in ("schemas", "metadata")}, schema)


@pytest.mark.parametrize("kind", ["batch", "flow", "flow-fragment"])
def test_every_kind_has_a_schema_that_is_json(kind: str) -> None:
    schema = json.loads(json.dumps(json_schema(kind)))

    assert schema["title"] == f"dpone.{kind}.v1"
    assert schema["additionalProperties"] is False


def test_an_unknown_kind_is_a_wrong_request() -> None:
    with pytest.raises(DponeError, match="did you mean 'batch'") as caught:
        json_schema("bacth")

    assert caught.value.code == "DPONE_REQUEST_INVALID"
