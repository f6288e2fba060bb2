"""Which rows a MergeTree table holds, told by its active data parts, so that a change while reading is noticed.

A background merge replaces parts by one that covers their block numbers and holds their rows: that is not a change.
An insert, a dropped partition, a mutation, a replaced table, or a merge that removed rows is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

QUERY = (
    "SELECT partition_id, name, toUInt64(rows), min_block_number, max_block_number, toUInt64(data_version), "
    "toUInt32(modification_time) FROM system.parts WHERE active AND database = {database} AND table = {table}"
)


@dataclass(frozen=True, slots=True)
class Part:
    """One active part. ``version`` is the last mutation that it contains; ``written`` seconds since 1970."""

    partition: str
    name: str
    rows: int
    first: int
    last: int
    version: int
    written: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The active parts of one table at one moment. ``table_written`` tells a table from its replacement."""

    table_written: str
    parts: frozenset[Part]

    @classmethod
    def of(cls, table_written: str, rows: Iterable[tuple[Any, ...]]) -> Parts:
        """From the rows of ``QUERY``."""
        return cls(table_written, frozenset(Part(*row) for row in rows))

    def same_rows(self, later: Parts) -> bool:
        """Whether a later look shows the same rows, perhaps in merged parts."""
        if self.table_written != later.table_written:
            return False
        gone, new = self.parts - later.parts, later.parts - self.parts
        return all(_merged(part, gone) for part in new) and all(_covered(part, new) for part in gone)

    @property
    def fingerprint(self) -> Mapping[str, str | int]:
        """How many parts, and their digest."""
        import hashlib

        lines = "\n".join(sorted(f"{part.partition} {part.name} {part.rows}" for part in self.parts))
        return {"parts": len(self.parts), "parts_digest": f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"}


def _merged(part: Part, gone: frozenset[Part]) -> bool:
    inside = [old for old in gone if _covered(old, frozenset((part,)))]
    if not inside:
        return False
    return (
        sum(old.rows for old in inside) == part.rows
        and min(old.first for old in inside) == part.first
        and max(old.last for old in inside) == part.last
    )


def _covered(old: Part, new: frozenset[Part]) -> bool:
    return any(
        part.partition == old.partition
        and part.first <= old.first
        and old.last <= part.last
        and (part.version == old.version or part.version == part.first)
        for part in new
    )
