"""JSON Schemas of the manifest's kinds, from the same shapes that check them, for editors.

An editor accepts what the loader accepts, except for rules that need several fields.
"""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from ...domain.errors import DponeError, ErrorCode
from .fields import Bounded, Strict, suggestion
from .grammar import KINDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a kind, by its full name or ``batch``, ``flow``, ``flow-fragment``.

    Raises DponeError (REQUEST_INVALID) for any other.
    """
    full = kind if kind in KINDS else f"dpone.{kind}.v1"
    if full not in KINDS:
        short = [name.removeprefix("dpone.").removesuffix(".v1") for name in KINDS]
        raise DponeError(
            ErrorCode.REQUEST_INVALID,
            f"There is no such kind of manifest; the kinds are {', '.join(short)}{suggestion(kind, short)}.",
            next="dpone schema batch",
        )
    return {"$schema": DIALECT, "title": full, **of_shape(KINDS[full]())}


def of_shape(shape: Schema, *, partial: bool = False) -> dict[str, Any]:
    """The schema of a mapping. ``partial``: nothing in it is required, since it is merged with other mappings."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _of_field(field, partial) for name, field in shape.fields.items()},
        "additionalProperties": False,
    }
    if description := _first_line(shape):
        schema["description"] = description
    required = [name for name, field in shape.fields.items() if field.required]
    if required and not partial:
        schema["required"] = required
    return schema


def _of_field(field: fields.Field[Any], partial: bool) -> dict[str, Any]:
    match field:
        case Strict():
            return field.json()
        case fields.Nested():
            return of_shape(field.schema, partial=partial)
        case Bounded():
            # A list is replaced as a whole, so that what is in it must be complete.
            return {"type": "array", "items": _of_field(field.inner, False), "maxItems": field.longest}
        case _:
            raise TypeError(f"no JSON Schema is known for a {type(field).__name__}")


def _first_line(shape: Schema) -> str:
    return (type(shape).__doc__ or "").partition("\n")[0]
