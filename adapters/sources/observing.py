"""What is counted while rows stream: exactly the rows that were yielded, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...domain.limits import DISTINCT_VALUES_MAX
from ...domain.tables import Column, Metrics, Observation
from ...domain.typed_hash import format_hash
from .declared import parsed
from .distinct import Distinct
from .refusals import declaration, shown
from .row_hash import batch_hash


class Observer:
    """Counts what ``metrics`` asks for, and nothing else, over converted batches.

    Distinct counts leave NULL out; -0.0 and 0.0 are one value, and so are all NaNs.
    """

    def __init__(self, columns: Sequence[Column], metrics: Metrics, distinct_max: int = DISTINCT_VALUES_MAX) -> None:
        names = {column.name for column in columns}
        for name in (*metrics.null_counts, *metrics.distinct_counts):
            if name not in names:
                raise declaration(
                    f"The observation counts column {shown(name)}, which the table does not have.",
                    "Correct quality.acceptance.checks.",
                )
        self._types = parsed(columns)
        self._hashing = metrics.typed_hash
        self._rows = 0
        self._hash = 0
        self._nulls = dict.fromkeys(metrics.null_counts, 0)
        self._distinct = {name: Distinct(name, distinct_max) for name in metrics.distinct_counts}

    def add(self, batch: Any) -> None:
        """Count one batch. Raises DponeError (EVIDENCE_UNSUPPORTED) over the limit of distinct values."""
        self._rows += batch.num_rows
        for name in self._nulls:
            self._nulls[name] += batch.column(name).null_count
        for name, distinct in self._distinct.items():
            distinct.add(batch.column(name))
        if self._hashing:
            self._hash = (self._hash + batch_hash(batch, self._types)) % 2**64

    def result(self) -> Observation:
        """What was counted so far."""
        counts: Mapping[str, int] = {name: distinct.count() for name, distinct in self._distinct.items()}
        text = format_hash(self._rows, self._hash) if self._hashing else None
        return Observation(self._rows, dict(self._nulls), counts, text)
