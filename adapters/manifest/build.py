"""From a process's checked fields to the configuration that decisions are made on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...domain.configuration import (
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
    default_engine,
    default_options,
)
from ...domain.limits import KEEP_GENERATIONS_DEFAULT, MAX_SOURCE_BYTES_DEFAULT

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Label:
    """A batch's table: its schema and name, which label the process and, in a database, say what is read."""

    schema: str
    name: str


def process(fields: Fields, folder: Path, label: Label | None = None) -> Process:
    """One process. ``folder`` is where relative paths start; ``label`` is set in a batch.

    ``sink.table.name`` must be present: ``load`` fills it in.
    """
    return Process(
        name=fields["name"],
        source=_source(fields["source"], folder, label),
        sink=_sink(fields["sink"]),
        quality=_quality(fields.get("quality", {})),
        depends_on=tuple(fields.get("depends_on", ())),
        selector=f"{label.schema}.{label.name}" if label else fields["name"],
    )


def _source(fields: Fields, folder: Path, label: Label | None) -> SourceSpec:
    kind = SourceType(fields["type"])
    written = fields.get("options", {})
    path = fields.get("path")
    return SourceSpec(
        type=kind,
        connection_ref=fields.get("connection_ref"),
        path=path,
        table=_source_table(kind, fields, label),
        query=fields.get("query"),
        options={
            **default_options(kind),
            **{name: tuple(value) if isinstance(value, list) else value for name, value in written.items()},
        },
        resolved_path=None if path is None else str(folder / path),
    )


def _source_table(kind: SourceType, fields: Fields, label: Label | None) -> SourceTable | None:
    if not kind.has_tables or "query" in fields:
        return None
    schema, name = (label.schema, label.name) if label else (fields["table"].get("schema"), fields["table"]["name"])
    return SourceTable(name, schema if kind.is_connected else None)


def _sink(fields: Fields) -> SinkSpec:
    options = fields.get("options", {})
    strategy = fields.get("strategy", {})
    storage = options.get("physical_design", {}).get("storage", {}).get("clickhouse", {})
    cluster = ClusterSpec(**storage["cluster"]) if "cluster" in storage else None
    database = fields["table"]["schema"]
    staging = fields.get("staging", {}).get("schema", database)
    return SinkSpec(
        connection_ref=fields["connection_ref"],
        database=database,
        table=fields["table"]["name"],
        columns=fields.get("columns"),
        schema_change=SchemaChange(fields.get("schema_change", SchemaChange.REFUSE)),
        staging_database=None if staging == database else staging,
        max_source_bytes=strategy.get("max_source_bytes", MAX_SOURCE_BYTES_DEFAULT),
        keep_generations=strategy.get("keep_generations", KEEP_GENERATIONS_DEFAULT),
        durable=options.get("durable_quality_replay", False),
        lineage=options.get("lineage", False),
        engine=storage.get("engine", default_engine(cluster)),
        order_by=tuple(storage.get("order_by", ())),
        partition_by=storage.get("partition_by"),
        cluster=cluster,
    )


def _quality(fields: Fields) -> QualitySpec:
    return QualitySpec(
        gates=tuple(_gate(gate) for gate in fields.get("gates", ())),
        acceptance=_acceptance(fields["acceptance"]) if "acceptance" in fields else AcceptanceSpec(),
    )


def _gate(fields: Fields) -> GateSpec:
    kind = GateType(fields["type"])
    parameters: dict[str, Any] = {}
    if kind is GateType.ROW_COUNT_RECONCILIATION:
        parameters["tolerance"] = dict(fields.get("tolerance", {"mode": "absolute", "value": "0"}))
    if kind is GateType.MIN_ROWS:
        parameters["rows"] = fields["rows"]
    return GateSpec(fields.get("id", kind.value), kind, Severity(fields.get("severity", Severity.ERROR)), parameters)


def _acceptance(fields: Fields) -> AcceptanceSpec:
    if not fields.get("enabled", True):
        return AcceptanceSpec()  # what a disabled acceptance would have counted changes nothing
    capture = fields.get("capture", {})
    checks = fields.get("checks", {})
    return AcceptanceSpec(
        enabled=True,
        mode=AcceptanceMode(fields.get("mode", AcceptanceMode.REQUIRED)),
        capture_source=capture.get("source", True),
        capture_staged=capture.get("staged", True),
        capture_target=capture.get("target", True),
        row_count=checks.get("row_count", True),
        null_counts=tuple(checks.get("null_counts", ())),
        distinct_counts=tuple(checks.get("distinct_counts", ())),
    )
