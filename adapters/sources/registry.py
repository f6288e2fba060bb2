"""Which class reads which ``source.type``. Adding a source is one file and one line of ``SOURCES``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...domain.limits import MAX_SOURCE_BYTES_DEFAULT
from ...domain.tables import Column
from .declared import ExtraColumns
from .refusals import declaration, shown

if TYPE_CHECKING:
    from ...domain.ports import Source
    from ..connections.connection import Connection

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "arrow": (".arrow", "ArrowSource"),
    "clickhouse": (".clickhouse", "ClickHouseSource"),
    "csv": (".csv", "CsvSource"),
    "parquet": (".parquet", "ParquetSource"),
    "postgres": (".postgres", "PostgresSource"),
    "sqlite": (".sqlite", "SqliteSource"),
}


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A manifest's ``source`` block, resolved: ``path`` is absolute, ``declared`` comes from ``sink.columns``.

    ``options`` are the source's own, without ``extra_columns``; ``schema`` is a database on ClickHouse.
    """

    type: str
    path: Path | None = None
    table: str | None = None
    query: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    declared: tuple[Column, ...] | None = None
    extra_columns: ExtraColumns = "refuse"
    max_bytes: int = MAX_SOURCE_BYTES_DEFAULT
    schema: str | None = None
    connection: Connection | None = None

    def server(self) -> Connection:
        """The connection of a source on a server. Raises SourceFailed (DPONE_MANIFEST_INVALID) without one."""
        if self.connection is None:
            raise declaration(f"A {self.type} source needs a connection.", "Add source.connection_ref.")
        return self.connection

    def file_path(self) -> Path:
        """The path of a file source. Raises SourceFailed (DPONE_MANIFEST_INVALID) without one."""
        if self.path is None:
            raise declaration(f"A {self.type} source needs a path.", "Add source.path.")
        return self.path

    def require_no_options(self) -> None:
        """Raise SourceFailed (DPONE_MANIFEST_INVALID) for an option: this source has none of its own."""
        for name in self.options:
            raise declaration(
                f"source.options.{shown(str(name))[1:-1]} is not known for {self.type}.",
                "A source of this type has the option extra_columns only.",
            )


def open_source(request: SourceRequest) -> Source:
    """The source of a request; nothing is opened yet. Raises SourceFailed (DPONE_MANIFEST_INVALID)."""
    if request.type not in SOURCES:
        raise declaration(
            f"The source type {shown(request.type)} is not known.", f"Types: {', '.join(sorted(SOURCES))}."
        )
    module, name = SOURCES[request.type]
    source: Source = getattr(import_module(module, __package__), name).from_request(request)
    import_module(".rows", __package__)  # what a read counts and converts with, while the engine is being opened
    import_module(".observing", __package__)
    return source
