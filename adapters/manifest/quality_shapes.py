"""The shapes of a process's quality: gates and acceptance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from marshmallow import ValidationError, validates_schema

from ...domain.configuration import AcceptanceMode, GateType, Severity, ToleranceMode
from ...domain.limits import COUNT_MAX, GATES_MAX, METRIC_COLUMNS_MAX
from . import fields as f
from .fields import Shape, part, parts


class ToleranceShape(Shape):
    """How far counts may differ."""

    mode = f.Choice(ToleranceMode, required=True)
    value = f.Amount(required=True)

    @validates_schema
    def _percent(self, data: Mapping[str, Any], **_: Any) -> None:
        if data.get("mode") == ToleranceMode.PERCENT and float(data.get("value", 0)) > 100:
            raise ValidationError({"value": ["must be from 0 to 100 percent"]})


class GateShape(Shape):
    """A threshold. Its id defaults to its type."""

    id = f.Name()
    type = f.Choice(GateType, required=True)
    severity = f.Choice(Severity)
    tolerance = part(ToleranceShape)
    rows = f.Whole(1, COUNT_MAX)

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _fits_type(self, data: Mapping[str, Any], original: Any, **_: Any) -> None:
        own = _PARAMETERS.get(data.get("type", ""))
        if own is None or not isinstance(original, Mapping):
            return
        problems = {
            key: [f"a {data['type']} gate has no {key}"]
            for key in ("tolerance", "rows")
            if key in original and key not in own
        }
        if "rows" in own and "rows" not in original:
            problems["rows"] = ["required for a min_rows gate"]
        if problems:
            raise ValidationError(problems)


_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    GateType.ROW_COUNT_RECONCILIATION: ("tolerance",),
    GateType.MIN_ROWS: ("rows",),
    GateType.TYPED_HASH_RECONCILIATION: (),
}


class CaptureShape(Shape):
    """Which observations are taken."""

    source = f.Flag()
    staged = f.Flag()
    target = f.Flag()


class ChecksShape(Shape):
    """What each observation counts."""

    row_count = f.Flag()
    null_counts = f.Several(f.Column_(), METRIC_COLUMNS_MAX)
    distinct_counts = f.Several(f.Column_(), METRIC_COLUMNS_MAX)

    @validates_schema
    def _bounded(self, data: Mapping[str, Any], **_: Any) -> None:
        if len({*data.get("null_counts", ()), *data.get("distinct_counts", ())}) > METRIC_COLUMNS_MAX:
            raise ValidationError(
                {"distinct_counts": [f"more than {METRIC_COLUMNS_MAX} different columns are counted"]}
            )


class AcceptanceShape(Shape):
    """Observations kept as evidence; they are no thresholds."""

    enabled = f.Flag()
    mode = f.Choice(AcceptanceMode)
    capture = part(CaptureShape)
    checks = part(ChecksShape)

    @validates_schema
    def _something(self, data: Mapping[str, Any], **_: Any) -> None:
        capture = data.get("capture", {})
        if data.get("enabled", True) and not any(capture.get(name, True) for name in ("source", "staged", "target")):
            raise ValidationError({"capture": ["nothing would be observed; capture one, or write enabled: false"]})


class QualityShape(Shape):
    """What is checked and observed."""

    gates = parts(GateShape, GATES_MAX)
    acceptance = part(AcceptanceShape)

    @validates_schema
    def _gate_ids(self, data: Mapping[str, Any], **_: Any) -> None:
        gates = data.get("gates", [])
        ids = [gate.get("id", gate["type"]) for gate in gates]
        if twice := {
            index: {"id": ["another gate has this id; ids are unique (default: the type)"]}
            for index, name in enumerate(ids)
            if name in ids[:index]
        }:
            raise ValidationError({"gates": twice})
