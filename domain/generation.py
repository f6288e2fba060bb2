"""The parts of an operation's state: one read of the source, one publication, and why an operation failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .capsule import CapsuleCore
from .quality import GateResult
from .tables import Observation, TableDefinition, TableIdentity


@dataclass(frozen=True, slots=True)
class Generation:
    """One read of the source and everything known about the table it filled."""

    id: str
    candidate: str
    definition: TableDefinition
    source_schema: str = ""
    source: Observation | None = None
    fingerprint: Mapping[str, str | int] | None = None
    rows: Mapping[str, int] | None = None
    identities: Mapping[str, TableIdentity] | None = None
    staged: Observation | None = None
    gates: tuple[GateResult, ...] | None = None
    core: CapsuleCore | None = None
    core_digest: str | None = None

    @property
    def is_staged(self) -> bool:
        return self.identities is not None


@dataclass(frozen=True, slots=True)
class Publication:
    """What was dispatched: the current epoch's candidate name and what each replica held before.

    ``fenced`` is the name that a fence gave the new table: the only one under which it may be dispatched again.
    """

    epoch: int
    candidate: str
    exchange: bool
    predecessor: Mapping[str, TableIdentity]
    dispatches: int = 1
    fenced: str | None = None
    proven: Mapping[str, TableIdentity] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the operation failed, and whether the same command may take it up again."""

    code: str
    errors: tuple[str, ...]
    candidate: str | None
    final: bool
