"""Where a projection's tables are kept. Adding a store is a file next to this one and a line in ``_TARGETS``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Final, Protocol

from .faults import not_installed, refused
from .folding import RowChange
from .tables import PROJECTION_FORMAT, ProjectedTable, Row


@dataclass(frozen=True, slots=True)
class Mark:
    """Which ledger the tables follow and how far: the row of ``projection_position``."""

    format: int
    ledger_id: str
    epoch: int
    position: int
    last_event: str

    @classmethod
    def start(cls, ledger_id: str, epoch: int) -> Mark:
        """Nothing of this ledger yet."""
        return cls(PROJECTION_FORMAT, ledger_id, epoch, 0, "")

    def moved(self, position: int, last_event: str) -> Mark:
        """The same, further on."""
        return replace(self, position=position, last_event=last_event)


class KeptRows(Protocol):
    """The tables at one moment."""

    @property
    def mark(self) -> Mark | None:
        """How far they are; None where there are no tables."""
        ...

    def rows(self, table: ProjectedTable) -> Iterator[Row]:
        """All rows in the order of their keys (text: by code point). Read in pages."""
        ...


class ProjectionTarget(Protocol):
    """A database that keeps the tables. Methods raise ProjectionFailed."""

    @property
    def name(self) -> str:
        """How sentences call it: short, without folder, credential or endpoint."""
        ...

    def mark(self) -> Mark | None:
        """How far the tables are; None where there are none."""
        ...

    def restart(self, mark: Mark) -> None:
        """Drop this product's tables where they are, and create empty ones that follow from ``mark``. All or nothing.

        Tables of the same names that this product did not make are refused, and so is a ledger's own place.
        """
        ...

    def advance(self, before: Mark, after: Mark, changes: Sequence[RowChange]) -> bool:
        """Write rows and position in one transaction, if the position is still ``before``; else False, and nothing."""
        ...

    def snapshot(self) -> AbstractContextManager[KeptRows]:
        """The tables as they are now, whatever is written meanwhile."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Idempotent."""
        ...


_TARGETS: Final = {"sqlite": "sqlite", "postgresql": "postgres"}
"""URL scheme → the module in this package whose ``open_url(rest)`` opens such a target."""


def open_target(url: str) -> ProjectionTarget:
    """Open ``sqlite:///absolute/path`` or ``postgresql://…``; a missing SQLite file is created by the first rows.

    Raises ProjectionFailed.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _TARGETS:
        raise refused("it is not one that this release can project to")
    try:
        module = import_module(f".{_TARGETS[scheme]}", __package__)
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise not_installed(scheme, error.name) from None
    target: ProjectionTarget = module.open_url(rest)
    return target
