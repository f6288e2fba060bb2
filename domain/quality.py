"""Gates: thresholds that decide whether a staged candidate may be published. One class a type.

To add a gate, write a class with ``type``, ``version`` and ``evaluate`` and put it into :data:`GATES`; the manifest's
grammar takes its parameters from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Protocol

from .tables import Observation


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate's verdict with everything it was based on. A reader that does not know ``type`` keeps it as data."""

    id: str
    type: str
    type_version: int
    severity: str
    parameters: Mapping[str, Any]
    observed: Mapping[str, Any]
    passed: bool

    def sentence(self) -> str:
        """The verdict for a person."""
        seen = ", ".join(f"{name} {_shown(value)}" for name, value in self.observed.items())
        return f"{self.id} ({self.type}): {seen}" + ("" if self.passed else " — outside the limit")


class Gate(Protocol):
    """A gate type."""

    type: ClassVar[str]
    version: ClassVar[int]

    def evaluate(
        self, parameters: Mapping[str, Any], source: Observation, staged: Observation
    ) -> tuple[bool, dict[str, Any]]:
        """Whether it passes, and what it saw."""
        ...


class RowCountReconciliation:
    """Source and staged row counts differ by at most a tolerance, absolute or in percent of the source's rows."""

    type: ClassVar[str] = "row_count_reconciliation"
    version: ClassVar[int] = 1

    def evaluate(
        self, parameters: Mapping[str, Any], source: Observation, staged: Observation
    ) -> tuple[bool, dict[str, Any]]:
        tolerance = parameters["tolerance"]
        value = Decimal(tolerance["value"])
        allowed = value if tolerance["mode"] == "absolute" else Decimal(source.row_count) * value / 100
        passed = abs(source.row_count - staged.row_count) <= allowed
        return passed, {"source": source.row_count, "staged": staged.row_count}


class MinRows:
    """The candidate holds at least so many rows."""

    type: ClassVar[str] = "min_rows"
    version: ClassVar[int] = 1

    def evaluate(
        self, parameters: Mapping[str, Any], source: Observation, staged: Observation
    ) -> tuple[bool, dict[str, Any]]:
        return staged.row_count >= parameters["rows"], {"staged": staged.row_count}


class TypedHashReconciliation:
    """Source and staged rows have the same typed hash: same values in the same columns, whatever the order."""

    type: ClassVar[str] = "typed_hash_reconciliation"
    version: ClassVar[int] = 1

    def evaluate(
        self, parameters: Mapping[str, Any], source: Observation, staged: Observation
    ) -> tuple[bool, dict[str, Any]]:
        passed = source.typed_hash is not None and source.typed_hash == staged.typed_hash
        return passed, {"source": source.typed_hash, "staged": staged.typed_hash}


GATES: Mapping[str, Gate] = {
    gate.type: gate for gate in (RowCountReconciliation(), MinRows(), TypedHashReconciliation())
}


def evaluate(
    gate_id: str,
    gate_type: str,
    severity: str,
    parameters: Mapping[str, Any],
    source: Observation,
    staged: Observation,
) -> GateResult:
    """Evaluate one gate."""
    gate = GATES[gate_type]
    passed, observed = gate.evaluate(parameters, source, staged)
    return GateResult(gate_id, gate_type, gate.version, severity, dict(parameters), observed, passed)


def all_passed(results: tuple[GateResult, ...]) -> bool:
    """Whether no gate of severity ``error`` failed."""
    return all(result.passed or result.severity == "warning" for result in results)


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
