"""The commands that the model's processes run: three runs of one dag and one of another, each durable or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpone.domain.configuration import (
    AcceptanceMode,
    AcceptanceSpec,
    GateSpec,
    GateType,
    Process,
    QualitySpec,
    SinkSpec,
    SourceSpec,
    SourceType,
    default_options,
    semantic,
    semantic_digest,
)
from dpone.domain.identity import OperationKey
from dpone.domain.steps import Request
from dpone.domain.tables import Column

from .world import TARGET

COLUMNS: Final = (Column("id", "UInt64"),)
KEYS: Final[Mapping[str, OperationKey]] = {
    "monday": OperationKey("night", "monday", "load", TARGET.platform_id, TARGET.database, TARGET.table),
    "tuesday": OperationKey("night", "tuesday", "load", TARGET.platform_id, TARGET.database, TARGET.table),
    "wednesday": OperationKey("night", "wednesday", "load", TARGET.platform_id, TARGET.database, TARGET.table),
    "foreign dag": OperationKey("day", "monday", "load", TARGET.platform_id, TARGET.database, TARGET.table),
}
FLAVOURS: Final = ("observed", "warn only", "version 1", "not durable")


def configured(flavour: str, path: str = "orders.csv") -> Process:
    """A process with one gate: at least one row."""
    mode = AcceptanceMode.WARN_ONLY if flavour == "warn only" else AcceptanceMode.REQUIRED
    observed = AcceptanceSpec(enabled=True, mode=mode) if flavour in ("observed", "warn only") else AcceptanceSpec()
    gate = GateSpec("rows", GateType.MIN_ROWS, parameters={"rows": 1})
    return Process(
        name="load",
        source=SourceSpec(SourceType.CSV, path=path, options=default_options(SourceType.CSV)),
        sink=SinkSpec("embedded", TARGET.database, TARGET.table, columns=COLUMNS, durable=flavour != "not durable"),
        quality=QualitySpec((gate,), observed),
    )


def command(key: str, flavour: str, *, changed: bool = False) -> Request:
    """The request of one command; ``changed`` reads another file."""
    form = semantic(configured(flavour, "corrected.csv" if changed else "orders.csv"))
    return Request(KEYS[key], form, semantic_digest(form))
