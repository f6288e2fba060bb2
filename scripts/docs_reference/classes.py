"""Pages about classes: the events, the capsule, the error codes. Meaning comes from docstrings, fields from fields."""

from __future__ import annotations

import re
import types
import typing
from dataclasses import fields
from enum import StrEnum
from typing import Any

from dpone.domain import capsule as capsules
from dpone.domain import event_table, quality, tables
from dpone.domain import events as e
from dpone.domain.errors import ErrorCode
from dpone.domain.identity import OperationKey
from dpone.domain.platform_events import AdmittedReplica

from .pages import plain, table

_SECTIONS = (
    ("The operation's stream", event_table.OPERATION_EVENTS),
    ("Both streams", event_table.SHARED_EVENTS),
    ("The target slot's stream", event_table.SLOT_EVENTS),
    ("The platform's stream", event_table.PLATFORM_EVENTS),
)
_INSIDE_EVENTS = (e.By, e.Role, OperationKey, tables.TargetRef, tables.TableDefinition, tables.Column, AdmittedReplica)
_EVIDENCE = (tables.TableIdentity, tables.Observation, quality.GateResult)
_CAPSULE = (
    capsules.Capsule,
    capsules.Receipt,
    capsules.CapsuleCore,
    capsules.Producer,
    OperationKey,
    capsules.Policy,
    capsules.SchemaDigests,
    quality.GateResult,
    tables.Observation,
    capsules.TargetPlan,
    tables.Column,
    tables.Metrics,
)


def events() -> str:
    """Every event class by stream, and the classes inside them."""
    parts = []
    for title, kinds in _SECTIONS:
        parts.append(f"## {title}")
        parts += [_section(kind) for kind in kinds]
    parts.append("## Inside the events")
    parts += [_section(kind) for kind in (*_INSIDE_EVENTS, *_EVIDENCE)]
    return "\n\n".join(parts)


def capsule() -> str:
    """The classes of the capsule, the envelope first."""
    return "\n\n".join(_section(kind, inside_capsule=True) for kind in _CAPSULE)


def error_codes() -> str:
    """All codes with their exit codes."""
    return table(("code", "exit code"), [(f"[`{code}`](#{_anchor(code)})", str(code.exit_code)) for code in ErrorCode])


def _anchor(code: ErrorCode) -> str:
    return code.value.lower()


def _section(kind: Any, inside_capsule: bool = False) -> str:
    head = f"### {kind.__name__}\n\n{plain(kind.__doc__)}"
    if issubclass(kind, StrEnum):
        return f"{head}\n\nOne of: {', '.join(f'`{item.value}`' for item in kind)}."
    hints = typing.get_type_hints(kind)
    rows = [
        (f"`{field.name}`", _type(hints[field.name], inside_capsule)) for field in fields(kind) if field.name != "at"
    ]
    return f"{head}\n\n{table(('field', 'type'), rows)}" if rows else head


def _type(hint: Any, inside_capsule: bool) -> str:
    """A type as a reader of JSON would say it."""
    plain_names = {str: "text", int: "whole number", bool: "true or false", type(None): "null", Any: "any JSON value"}
    if hint in plain_names:
        return plain_names[hint]
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(argument, inside_capsule) for argument in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0], inside_capsule)}"
    if origin is not None:
        return f"object of {_type(arguments[1], inside_capsule)}"
    name = re.sub(r".*\.", "", hint.__name__)
    page = "capsule.md" if hint is capsules.CapsuleCore and not inside_capsule else ""
    return f"[{name}]({page}#{name.lower()})"
