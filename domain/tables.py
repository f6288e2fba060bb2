"""Tables as the protocol sees them: columns, definitions, identities, and what one look at a replica shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and its canonical ClickHouse type name, for example ``Nullable(UInt16)``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TargetRef:
    """The physical target: a platform (by its minted id), a database and a table."""

    platform_id: str
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What CREATE TABLE needs. ``order_by`` empty means no sorting key; ``partition_by`` is a column or expression."""

    columns: tuple[Column, ...]
    engine: str = "MergeTree"
    order_by: tuple[str, ...] = ()
    partition_by: str | None = None


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """Which table it is (``id``: UUID on the embedded engine, Keeper path on a cluster) and how it is built.

    ``digest`` is ``sha256:`` over the canonical JSON of column names, types, sorting key and engine name. Same id with
    another digest means that somebody altered the table.
    """

    id: str
    digest: str


@dataclass(frozen=True, slots=True)
class ReplicaLook:
    """One replica at one moment: the target's and this product's tables in the database, by name.

    ``tables`` is meaningless when ``reachable`` is false.
    """

    replica: str
    reachable: bool = True
    tables: Mapping[str, TableIdentity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What an observation must count. Rows are always counted."""

    null_counts: tuple[str, ...] = ()
    distinct_counts: tuple[str, ...] = ()
    typed_hash: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What was counted.

    Distinct counts leave NULL out. ``typed_hash`` is ``v1:<rows>:<sum>``, the sum of the rows' hashes modulo 2**64 in
    decimal (see :mod:`dpone.domain.typed_hash`), or None when it was not asked for.
    """

    row_count: int
    null_counts: Mapping[str, int] = field(default_factory=dict)
    distinct_counts: Mapping[str, int] = field(default_factory=dict)
    typed_hash: str | None = None
