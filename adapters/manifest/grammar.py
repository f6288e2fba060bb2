"""The manifest's kinds. What is written here is what is accepted, and what the JSON Schemas say.

Rules that need more than one field stand beside the fields they are about; what needs a whole file (unique names,
targets, dependencies) is in ``load``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from marshmallow import ValidationError, validates_schema

from . import fields as f
from .fields import Shape, part, parts
from .process_shapes import PROCESSES_MAX, LocalPath, ProcessShape
from .quality_shapes import QualityShape

BATCH: Final = "dpone.batch.v1"
FLOW: Final = "dpone.flow.v1"
FRAGMENT: Final = "dpone.flow-fragment.v1"
FRAGMENTS_MAX: Final = 64


class Partial(f.Strict):
    """Some fields of a process (or of its quality), checked once they are merged with what they override."""

    def __init__(self, shape: type[Shape], **rest: Any) -> None:
        super().__init__(**rest)
        self.shape = shape

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, dict):
            return value
        raise ValidationError(f"must be a mapping of fields, not {f.kind_of(value)}")

    def json(self) -> dict[str, Any]:
        from .json_schemas import of_shape

        return of_shape(self.shape(), partial=True)


class Tables(f.Strict):
    """A batch's tables by schema: each a name, or a mapping with ``name`` and what differs from the defaults."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, dict) or not value:
            raise ValidationError("must be a mapping: <schema>: {tables: [<name>, …]}")
        problems = {schema: found for schema, body in value.items() if (found := self._schema_problems(schema, body))}
        if problems:
            raise ValidationError(problems)
        return value

    def _schema_problems(self, schema: str, body: Any) -> Any:
        if found := _problems(_LABEL, schema):
            return found
        if not isinstance(body, dict):
            return ["must be a mapping: {tables: [<name>, …]}"]
        problems: dict[Any, Any] = {key: ["unknown field; known is tables"] for key in body if key != "tables"}
        tables = body.get("tables")
        if not isinstance(tables, list) or not tables:
            return {**problems, "tables": ["must be a list of names, or of mappings with a name"]}
        if len(tables) > PROCESSES_MAX:
            return {**problems, "tables": [f"must be a list of at most {PROCESSES_MAX}"]}
        entries = {index: found for index, entry in enumerate(tables) if (found := self._entry_problems(entry))}
        return {**problems, "tables": entries} if entries else problems

    def _entry_problems(self, entry: Any) -> Any:
        if not isinstance(entry, dict):
            return _problems(_LABEL, entry)
        if "name" not in entry:
            return ["required: name"]
        found = _problems(_LABEL, entry["name"])
        return {"name": found} if found else {}

    def json(self) -> dict[str, Any]:
        from .json_schemas import of_shape

        entry = {"anyOf": [_LABEL.json(), {**of_shape(ProcessShape(), partial=True), "required": ["name"]}]}
        tables = {"type": "array", "items": entry, "minItems": 1}
        body = {
            "type": "object",
            "properties": {"tables": tables},
            "required": ["tables"],
            "additionalProperties": False,
        }
        return {"type": "object", "additionalProperties": body, "minProperties": 1}


_LABEL: Final = f.Identifier()


def _problems(field: f.Strict, value: Any) -> list[str]:
    try:
        field.deserialize(value)
    except ValidationError as error:
        return [str(message) for message in error.messages]
    return []


class BatchShape(Shape):
    """Many tables of one kind: defaults, and what differs."""

    kind = f.Choice((BATCH,), required=True)
    defaults = Partial(ProcessShape, required=True)
    quality = Partial(QualityShape)
    schemas = Tables(required=True)


class MetadataShape(Shape):
    """What a flow is called."""

    id = f.Name(required=True)
    description = f.Text(10_000, multiline=True)


class AuthoringShape(Shape):
    """Where a flow's processes are written."""

    mode = f.Choice(("folder",), required=True)


class FlowShape(Shape):
    """Processes, each written out, here or in fragments."""

    kind = f.Choice((FLOW,), required=True)
    metadata = part(MetadataShape, required=True)
    processes = parts(ProcessShape, PROCESSES_MAX)
    authoring = part(AuthoringShape)
    fragments = f.Several(LocalPath(), FRAGMENTS_MAX)

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _one_way(self, data: Any, original: Any, **_: Any) -> None:
        if not isinstance(original, Mapping):
            return
        folder = "authoring" in original
        problems = {}
        if folder and "processes" in original:
            problems["processes"] = ["processes and authoring exclude each other; keep one"]
        if folder and not original.get("fragments"):
            problems["fragments"] = ["required with authoring: a list of paths"]
        if not folder and "fragments" in original:
            problems["fragments"] = ["needs authoring: {mode: folder}"]
        if not folder and not original.get("processes"):
            problems["processes"] = ["required: a list of at least one process, or authoring: {mode: folder}"]
        if problems:
            raise ValidationError(problems)


class FragmentShape(Shape):
    """A part of a folder flow."""

    kind = f.Choice((FRAGMENT,), required=True)
    processes = parts(ProcessShape, PROCESSES_MAX, required=True)


KINDS: Final[Mapping[str, type[Shape]]] = {BATCH: BatchShape, FLOW: FlowShape, FRAGMENT: FragmentShape}
