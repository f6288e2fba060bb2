"""Connections that Airflow knows: the variable ``AIRFLOW_CONN_<REFERENCE>``, or a connection object inside a task.

The variable holds JSON (``{"conn_type": …, "host": …, "login": …, "password": …, "port": …, "schema": …, "extra": …}``)
or a URI, as Airflow's "Managing Connections" describes. ``secure`` and ``ca_file`` come from the extra; whatever else
stands there is a param. Airflow itself is imported only inside a task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from .connection import Connection
from .environment import variable_stem
from .fields import Said
from .refusals import invalid
from .urls import KINDS

_IN_TASK: Final = "AIRFLOW_CTX_DAG_ID"
_PARTS: Final[Mapping[str, str]] = {
    "host": "host",
    "port": "port",
    "schema": "database",
    "login": "username",
    "password": "password",
}
_OTHER: Final = ("conn_type", "extra", "description", "conn_id")
_REMEDY: Final = "Give the JSON or URI form of an Airflow connection."


@dataclass(frozen=True, slots=True)
class AirflowProvider:
    """Knows what the environment's Airflow variables say, and inside a task what Airflow's own backends know."""

    environ: Mapping[str, str]

    def connection(self, reference: str) -> Connection | None:
        """Raises DponeError (REQUEST_INVALID, CONNECTION_NOT_FOUND), which quotes no value."""
        name = f"AIRFLOW_CONN_{variable_stem(reference)}"
        if name in self.environ:
            text = self.environ[name]
            fields = _json(text, name) if text.lstrip().startswith("{") else _uri(text, name)
            return _said(reference, fields, name)
        if _IN_TASK in self.environ:
            return _from_task(reference)
        return None


def _json(text: str, name: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError:
        raise invalid(name, "is neither JSON nor a URI", _REMEDY) from None
    if not isinstance(fields, dict) or not set(fields) <= {*_PARTS, *_OTHER}:
        raise invalid(name, "has a field that Airflow connections do not have", _REMEDY)
    return fields


def _uri(text: str, name: str) -> dict[str, Any]:
    try:
        split = urlsplit(text)
        port = split.port
        extra = dict(parse_qsl(split.query, keep_blank_values=True))
    except ValueError:
        raise invalid(name, "is neither JSON nor a URI", _REMEDY) from None
    if not split.scheme:
        raise invalid(name, "is neither JSON nor a URI", _REMEDY)
    packed = extra.pop("__extra__", None)
    return {
        "conn_type": split.scheme.replace("-", "_"),
        "host": unquote(split.hostname) if split.hostname else None,
        "port": port,
        "schema": unquote(split.path[1:]) or None,
        "login": unquote(split.username) if split.username else None,
        "password": None if split.password is None else unquote(split.password),
        "extra": packed if packed is not None else extra,
    }


def _said(reference: str, fields: Mapping[str, Any], name: str) -> Connection:
    extra = fields.get("extra") or {}
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except ValueError:
            raise invalid(f"The extra of {name}", "is not JSON", _REMEDY) from None
    if not isinstance(extra, Mapping):
        raise invalid(f"The extra of {name}", "is not an object", _REMEDY)
    params = dict(extra)
    values = {part: fields[field] for field, part in _PARTS.items() if fields.get(field) not in (None, "")}
    values |= {part: params.pop(part) for part in ("secure", "ca_file") if part in params}
    if params:
        values["params"] = params
    found = Said(reference, values, lambda part: f"The {part} of {name}", text=False).connection()
    kind = KINDS.get(str(fields.get("conn_type", "")).lower())
    return found if kind is None else _of_kind(found, kind)


def _of_kind(connection: Connection, kind: str) -> Connection:
    from dataclasses import replace

    return replace(connection, kind=kind)


def _from_task(reference: str) -> Connection | None:
    try:
        from airflow.sdk import BaseHook  # type: ignore[import-not-found, unused-ignore]
        from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
            AirflowNotFoundException,
        )
    except ImportError:
        return None
    try:
        found = BaseHook.get_connection(reference)
    except AirflowNotFoundException:
        return None
    except Exception:  # whatever a secrets backend raises, its message may hold what it guards
        raise invalid(f"Airflow's connection {reference!r}", "could not be read", "Check Airflow's backends.") from None
    fields = {field: getattr(found, field, None) for field in (*_PARTS, "conn_type", "extra")}
    return _said(reference, fields, f"Airflow's connection {reference!r}")
