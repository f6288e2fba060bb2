"""One process as its author asked for it, after inheritance and defaults: source, sink, quality.

Two manifests that ask for the same yield equal values here, whatever their comments, key order or spelled-out
defaults. Users of these values import them from :mod:`~dpone.domain.configuration`, which adds their stored form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, assert_never

from .limits import KEEP_GENERATIONS_DEFAULT, MAX_SOURCE_BYTES_DEFAULT
from .tables import Column

EMBEDDED: Final = "embedded"
"""The connection reference of the engine in process."""


class SourceType(StrEnum):
    """Where rows can come from."""

    CLICKHOUSE = "clickhouse"
    POSTGRES = "postgres"
    SQLITE = "sqlite"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_connected(self) -> bool:
        """Whether it is reached through a connection; otherwise it is a local file."""
        return self in (SourceType.CLICKHOUSE, SourceType.POSTGRES)

    @property
    def has_tables(self) -> bool:
        """Whether a table or a query says which rows; otherwise the file is the rows."""
        return self.is_connected or self is SourceType.SQLITE


class SchemaChange(StrEnum):
    """What happens when undeclared columns differ from the live generation's."""

    REFUSE = "refuse"
    ADD = "add"
    FOLLOW = "follow"


class GateType(StrEnum):
    """The checks that can fail a load before it is published."""

    ROW_COUNT_RECONCILIATION = "row_count_reconciliation"
    MIN_ROWS = "min_rows"
    TYPED_HASH_RECONCILIATION = "typed_hash_reconciliation"


class Severity(StrEnum):
    """What a gate that does not pass does: fail the operation, or be recorded."""

    ERROR = "error"
    WARNING = "warning"


class ToleranceMode(StrEnum):
    """How a difference is measured: in rows, or in percent of the source's rows."""

    ABSOLUTE = "absolute"
    PERCENT = "percent"


class AcceptanceMode(StrEnum):
    """Whether a missing observation keeps the operation from completing."""

    REQUIRED = "required"
    WARN_ONLY = "warn_only"


_COMMON_OPTIONS: Final[Mapping[str, Any]] = {"extra_columns": "refuse"}
_CSV_OPTIONS: Final[Mapping[str, Any]] = {
    **_COMMON_OPTIONS,
    "delimiter": ",",
    "quote": '"',
    "header": True,
    "encoding": "utf-8",
    "null_values": ("",),
    "quoted_null": False,
    "decimal_point": ".",
    "skip_rows": 0,
    "trim": False,
    "compression": "auto",
}


def default_options(source: SourceType) -> Mapping[str, Any]:
    """Every option that a source of this type has, at its default."""
    match source:
        case SourceType.CSV:
            return _CSV_OPTIONS
        case SourceType.CLICKHOUSE | SourceType.POSTGRES | SourceType.SQLITE | SourceType.PARQUET | SourceType.ARROW:
            return _COMMON_OPTIONS
        case _:
            assert_never(source)


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table to read. SQLite tables have no schema."""

    name: str
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """What is read.

    ``path`` is a file's path as written; ``resolved_path`` the absolute one, which depends on where the manifest lies
    and therefore is not semantic. ``options`` holds every option of the source's type, defaults filled in.
    """

    type: SourceType
    connection_ref: str | None = None
    path: str | None = None
    table: SourceTable | None = None
    query: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    resolved_path: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster that statements go to."""

    name: str
    ddl_scope: str = "cluster"
    replication_mode: str = "internal"


def default_engine(cluster: ClusterSpec | None) -> str:
    """The table engine when the manifest names none."""
    return "MergeTree" if cluster is None else "ReplicatedMergeTree"


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """What is written, and where to.

    ``columns`` is None when they are taken from the typed source. ``staging_database`` is None when candidates stand
    beside the target. ``max_source_bytes`` (bytes) and ``keep_generations`` (predecessors) are not semantic.
    """

    connection_ref: str
    database: str
    table: str
    columns: tuple[Column, ...] | None = None
    schema_change: SchemaChange = SchemaChange.REFUSE
    staging_database: str | None = None
    max_source_bytes: int = MAX_SOURCE_BYTES_DEFAULT
    keep_generations: int = KEEP_GENERATIONS_DEFAULT
    durable: bool = False
    lineage: bool = False
    engine: str = "MergeTree"
    order_by: tuple[str, ...] = ()
    partition_by: str | None = None
    cluster: ClusterSpec | None = None


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One gate. ``parameters`` are canonical: tolerances as decimal strings, ``rows`` as an integer.

    ``row_count_reconciliation``: ``{"tolerance": {"mode": "absolute" | "percent", "value": "0"}}``; ``min_rows``:
    ``{"rows": 1}``; ``typed_hash_reconciliation``: none.
    """

    id: str
    type: GateType
    severity: Severity = Severity.ERROR
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AcceptanceSpec:
    """The observations that are taken as evidence; they are never thresholds."""

    enabled: bool = False
    mode: AcceptanceMode = AcceptanceMode.REQUIRED
    capture_source: bool = True
    capture_staged: bool = True
    capture_target: bool = True
    row_count: bool = True
    null_counts: tuple[str, ...] = ()
    distinct_counts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QualitySpec:
    """What is checked and observed."""

    gates: tuple[GateSpec, ...] = ()
    acceptance: AcceptanceSpec = AcceptanceSpec()


@dataclass(frozen=True, slots=True)
class Process:
    """One load. ``selector`` picks it from its manifest; ``depends_on`` names selectors of the same manifest."""

    name: str
    source: SourceSpec
    sink: SinkSpec
    quality: QualitySpec = QualitySpec()
    depends_on: tuple[str, ...] = ()
    selector: str = ""

    @property
    def owes_target(self) -> bool:
        """Whether the target must be observed before the operation completes (capsule version 2)."""
        acceptance = self.quality.acceptance
        return self.sink.durable and acceptance.enabled and acceptance.capture_target
