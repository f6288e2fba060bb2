"""What is counted while rows stream: exactly the rows that were yielded, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.errors import DponeError, ErrorCode
from ...domain.limits import DISTINCT_VALUES_MAX
from ...domain.tables import Column, Metrics, Observation
from ...domain.typed_hash import format_hash
from .declared import parsed
from .refusals import UNTOUCHED, declaration, shown
from .row_hash import batch_hash, canonical_bits

_MERGE_VALUES_MIN = 262_144


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
        self._distinct = {name: _Distinct(name, distinct_max) for name in metrics.distinct_counts}

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


class _Distinct:
    """The distinct values of one column. New ones wait until merging them is worth it: amortised linear time."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._known: Any = None
        self._waiting: list[Any] = []
        self._waiting_values = 0

    def add(self, values: Any) -> None:
        found = pc.unique(_comparable(values)).drop_null()
        self._waiting.append(found)
        self._waiting_values += len(found)
        if self._waiting_values >= max(_MERGE_VALUES_MIN, 0 if self._known is None else len(self._known)):
            self._merge()

    def count(self) -> int:
        self._merge()
        return 0 if self._known is None else len(self._known)

    def _merge(self) -> None:
        chunks = self._waiting if self._known is None else [self._known, *self._waiting]
        self._waiting, self._waiting_values = [], 0
        if not chunks:
            return
        self._known = pc.unique(pa.chunked_array(chunks))
        if len(self._known) > self._limit:
            raise DponeError(
                ErrorCode.EVIDENCE_UNSUPPORTED,
                f"Column {shown(self._name)} has more than {self._limit:,} distinct values; an exact count is bounded.",
                safe=UNTOUCHED,
                next="Leave the column out of quality.acceptance.checks.distinct_counts and repeat the command.",
            )


def _comparable(values: Any) -> Any:
    if pa.types.is_floating(values.type):
        return canonical_bits(values)
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    if pa.types.is_string(values.type):
        return values.cast(pa.large_string())  # offsets of 64 bits: merged values may exceed 2 GiB
    if pa.types.is_binary(values.type):
        return values.cast(pa.large_binary())
    return values
