"""The schemas that editors use are the grammar's own, and every example names the one that fits it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dpone.adapters.manifest import json_schema, load_manifest

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas"
EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))


@pytest.mark.parametrize("kind", ["batch", "flow", "flow-fragment"])
def test_the_committed_schema_is_the_grammars(kind: str) -> None:
    path = SCHEMAS / f"{kind}.schema.json"
    assert json.loads(path.read_text()) == json_schema(kind), f"dpone schema {kind} --format text > schemas/{path.name}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_editor_finds_the_schema_of_an_example(example: Path) -> None:
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", example.read_text())
    assert named is not None
    schema = json.loads((example.parent / named[1]).resolve().read_text())
    assert schema["title"] == load_manifest(example).kind
