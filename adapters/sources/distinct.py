"""Exact distinct counts of a column that streams by, in memory of the values that differ and not of the rows.

New values wait until merging them is worth it: amortised, each is merged a few times. Numbers are merged by sorting,
which is several times faster than a hash table that no longer fits a processor's cache, and free where the column
comes sorted. Everything else is merged by Arrow's hash table.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...domain.errors import DponeError, ErrorCode
from .refusals import UNTOUCHED, shown
from .row_hash import canonical_bits

_MERGE_VALUES_MIN = 262_144


class Distinct:
    """The distinct values of one column, NULL left out; ``limit`` bounds them."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._known: Any = None
        self._waiting: list[Any] = []
        self._waiting_values = 0

    def add(self, values: Any) -> None:
        """Count an Arrow array. Raises DponeError (EVIDENCE_UNSUPPORTED) over the limit."""
        found = _numbers_of(values) if _is_number(values.type) else _values_of(values)
        self._waiting.append(found)
        self._waiting_values += len(found)
        if self._waiting_values >= max(_MERGE_VALUES_MIN, 0 if self._known is None else len(self._known)):
            self._merge()

    def count(self) -> int:
        """How many there were until now. Raises as ``add``."""
        self._merge()
        return 0 if self._known is None else len(self._known)

    def _merge(self) -> None:
        parts = self._waiting if self._known is None else [self._known, *self._waiting]
        self._waiting, self._waiting_values = [], 0
        if not parts:
            return
        self._known = pc.unique(pa.chunked_array(parts)) if isinstance(parts[0], pa.Array) else _merged(parts)
        if len(self._known) > self._limit:
            raise DponeError(
                ErrorCode.EVIDENCE_UNSUPPORTED,
                f"Column {shown(self._name)} has more than {self._limit:,} distinct values; an exact count is bounded.",
                safe=UNTOUCHED,
                next="Leave the column out of quality.acceptance.checks.distinct_counts and repeat the command.",
            )


def _is_number(kind: Any) -> bool:
    is_time = pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_time)


def _numbers_of(values: Any) -> Any:
    """As integers in a NumPy array, sorted, each once."""
    return _sorted_once(_integers(values.drop_null()).to_numpy(zero_copy_only=False))


def _values_of(values: Any) -> Any:
    return pc.unique(_with_long_offsets(values)).drop_null()


def _merged(parts: list[Any]) -> Any:
    import numpy as np

    return _sorted_once(np.concatenate(parts))


def _integers(values: Any) -> Any:
    if pa.types.is_floating(values.type):
        return canonical_bits(values)
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    return values.view(pa.int32()) if pa.types.is_date32(values.type) else values


def _sorted_once(numbers: Any) -> Any:
    """Sorted, each once."""
    import numpy as np

    if bool((numbers[1:] > numbers[:-1]).all()):
        return numbers
    ordered = np.sort(numbers)
    is_first = np.empty(len(ordered), bool)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _with_long_offsets(values: Any) -> Any:
    """Merged texts may exceed the 2 GiB that offsets of 32 bits reach."""
    if pa.types.is_string(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary(values.type) else values
