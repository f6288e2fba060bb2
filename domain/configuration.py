"""The configuration of one process and its stored form.

:func:`semantic` is the part that counts for an operation's identity: it is stored with the operation, compared by a
retry, and :func:`from_semantic` turns it back into a process, so that an operation can be resumed from the ledger
alone. The values themselves are described in :mod:`~dpone.domain.process`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from enum import StrEnum
from typing import Any, Final

import rfc8785

from .errors import DponeError, ErrorCode
from .limits import CONFIGURATION_BYTES_MAX
from .process import (
    EMBEDDED,
    AcceptanceMode,
    AcceptanceSpec,
    ClusterSpec,
    GateSpec,
    GateType,
    Process,
    QualitySpec,
    SchemaChange,
    Severity,
    SinkSpec,
    SourceSpec,
    SourceTable,
    SourceType,
    ToleranceMode,
    default_engine,
    default_options,
)
from .tables import Column

__all__ = [
    "EMBEDDED",
    "SEMANTIC_FORMAT",
    "AcceptanceMode",
    "AcceptanceSpec",
    "ClusterSpec",
    "GateSpec",
    "GateType",
    "Process",
    "QualitySpec",
    "SchemaChange",
    "Severity",
    "SinkSpec",
    "SourceSpec",
    "SourceTable",
    "SourceType",
    "ToleranceMode",
    "default_engine",
    "default_options",
    "differences",
    "from_semantic",
    "semantic",
    "semantic_digest",
]

SEMANTIC_FORMAT: Final = 1
"""Version of the stored form. A default that changes needs a new version: stored forms leave defaults out."""


def semantic(process: Process) -> dict[str, Any]:
    """What changes what is read, written or checked, or where to, as JSON; values equal to defaults are left out.

    Left out as well: ``depends_on``, ``selector``, ``max_source_bytes``, ``keep_generations``, ``resolved_path``.
    Raises DponeError (MANIFEST_INVALID) when its canonical JSON is longer than CONFIGURATION_BYTES_MAX.
    """
    form: dict[str, Any] = {
        "format": SEMANTIC_FORMAT,
        "name": process.name,
        "source": _source_form(process.source),
        "sink": _sink_form(process.sink),
    }
    if quality := _quality_form(process.quality):
        form["quality"] = quality
    size = len(rfc8785.dumps(form))
    if size > CONFIGURATION_BYTES_MAX:
        raise DponeError(
            ErrorCode.MANIFEST_INVALID,
            f"The configuration of process {process.name!r} is {size} bytes long; "
            f"at most {CONFIGURATION_BYTES_MAX} are kept with an operation.",
            next="Shorten the query or the lists of the process.",
        )
    return form


def semantic_digest(form: Mapping[str, Any]) -> str:
    """``sha256:`` and the hexadecimal SHA-256 of the form's canonical JSON (RFC 8785)."""
    return "sha256:" + hashlib.sha256(rfc8785.dumps(dict(form))).hexdigest()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """The dotted names of the fields in which two semantic forms differ, sorted. Gates are named by their id."""
    return tuple(sorted(_differing(_by_id(old), _by_id(new), "")))


def from_semantic(form: Mapping[str, Any]) -> Process:
    """The process that a stored form stands for, its non-semantic parts at their defaults.

    Raises DponeError (EVIDENCE_INVALID) for a form that :func:`semantic` cannot have made.
    """
    if form.get("format") != SEMANTIC_FORMAT:
        raise _invalid(f"has format {str(form.get('format'))[:20]!r}; this version reads {SEMANTIC_FORMAT}")
    try:
        process = Process(
            name=form["name"],
            source=_source_from(form["source"]),
            sink=_sink_from(form["sink"]),
            quality=_quality_from(form.get("quality", {})),
        )
        if semantic(process) == form:
            return process
    except (KeyError, TypeError, ValueError, AttributeError):
        pass  # reported below: what is wrong inside is no help to a person, and might quote a value
    raise _invalid("is not one that this product writes")


def _invalid(what: str) -> DponeError:
    return DponeError(ErrorCode.EVIDENCE_INVALID, f"The stored configuration {what}.", next="dpone audit verify")


def _without(form: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """JSON of the entries that differ from their defaults."""
    kept = {key: value for key, value in form.items() if key not in defaults or value != defaults[key]}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in kept.items()}


_ABSENT_SOURCE: Final[Mapping[str, Any]] = {
    "connection_ref": None,
    "path": None,
    "table": None,
    "query": None,
    "options": {},
}
_SINK_DEFAULTS: Final[Mapping[str, Any]] = {
    "columns": None,
    "schema_change": SchemaChange.REFUSE,
    "staging_database": None,
    "durable": False,
    "lineage": False,
    "order_by": (),
    "partition_by": None,
    "cluster": None,
}
_ACCEPTANCE_FIELDS: Final = tuple(item.name for item in fields(AcceptanceSpec))


def _source_form(source: SourceSpec) -> dict[str, Any]:
    table = source.table and _without({"name": source.table.name, "schema": source.table.schema}, {"schema": None})
    form = {
        "type": source.type.value,
        "connection_ref": source.connection_ref,
        "path": source.path,
        "table": table,
        "query": source.query,
        "options": _without(source.options, default_options(source.type)),
    }
    return _without(form, _ABSENT_SOURCE)


def _source_from(form: Mapping[str, Any]) -> SourceSpec:
    kind = SourceType(form["type"])
    options = {
        key: tuple(value) if isinstance(value, list) else value for key, value in form.get("options", {}).items()
    }
    return SourceSpec(
        type=kind,
        connection_ref=form.get("connection_ref"),
        path=form.get("path"),
        table=SourceTable(**form["table"]) if "table" in form else None,
        query=form.get("query"),
        options={**default_options(kind), **options},
    )


def _sink_form(sink: SinkSpec) -> dict[str, Any]:
    form: dict[str, Any] = {
        "connection_ref": sink.connection_ref,
        "database": sink.database,
        "table": sink.table,
        "engine": sink.engine,
        **{name: getattr(sink, name) for name in _SINK_DEFAULTS},
    }
    form = _without(form, {**_SINK_DEFAULTS, "engine": default_engine(sink.cluster)})
    if sink.columns is not None:
        form["columns"] = [[column.name, column.type] for column in sink.columns]
    if sink.cluster is not None:
        form["cluster"] = _without(asdict(sink.cluster), {"ddl_scope": "cluster", "replication_mode": "internal"})
    if "schema_change" in form:
        form["schema_change"] = sink.schema_change.value
    return form


def _sink_from(form: Mapping[str, Any]) -> SinkSpec:
    cluster = ClusterSpec(**form["cluster"]) if "cluster" in form else None
    columns = tuple(Column(name, kind) for name, kind in form["columns"]) if "columns" in form else None
    return SinkSpec(
        connection_ref=form["connection_ref"],
        database=form["database"],
        table=form["table"],
        columns=columns,
        schema_change=SchemaChange(form.get("schema_change", SchemaChange.REFUSE)),
        staging_database=form.get("staging_database"),
        durable=form.get("durable", False),
        lineage=form.get("lineage", False),
        engine=form.get("engine", default_engine(cluster)),
        order_by=tuple(form.get("order_by", ())),
        partition_by=form.get("partition_by"),
        cluster=cluster,
    )


def _quality_form(quality: QualitySpec) -> dict[str, Any]:
    acceptance = quality.acceptance if quality.acceptance.enabled else AcceptanceSpec()
    form: dict[str, Any] = {}
    if quality.gates:
        form["gates"] = [_gate_form(gate) for gate in quality.gates]
    written = {name: getattr(acceptance, name) for name in _ACCEPTANCE_FIELDS}
    if different := _without(written, {name: getattr(AcceptanceSpec(), name) for name in _ACCEPTANCE_FIELDS}):
        form["acceptance"] = {
            key: value.value if isinstance(value, StrEnum) else value for key, value in different.items()
        }
    return form


def _gate_form(gate: GateSpec) -> dict[str, Any]:
    form = {
        "id": gate.id,
        "type": gate.type.value,
        "severity": gate.severity.value,
        "parameters": dict(gate.parameters),
    }
    return _without(form, {"severity": Severity.ERROR.value, "parameters": {}})


def _quality_from(form: Mapping[str, Any]) -> QualitySpec:
    gates = tuple(
        GateSpec(
            id=gate["id"],
            type=GateType(gate["type"]),
            severity=Severity(gate.get("severity", Severity.ERROR)),
            parameters=gate.get("parameters", {}),
        )
        for gate in form.get("gates", ())
    )
    written = dict(form.get("acceptance", {}))
    if "mode" in written:
        written["mode"] = AcceptanceMode(written["mode"])
    for name in ("null_counts", "distinct_counts"):
        written[name] = tuple(written.get(name, ()))
    return QualitySpec(gates, AcceptanceSpec(**written))


def _by_id(form: Mapping[str, Any]) -> Mapping[str, Any]:
    quality = form.get("quality", {})
    gates = {gate["id"]: gate for gate in quality.get("gates", ())}
    return {**form, "quality": {**quality, "gates": gates}}


def _differing(old: Any, new: Any, name: str) -> Iterator[str]:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        if old != new:
            yield name
        return
    for key in old.keys() | new.keys():
        yield from _differing(old.get(key), new.get(key), f"{name}.{key}" if name else key)
