"""Which part of the documentation is made by which function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from . import classes, cli, document, figures, hashes, limits, manifest, projections, states, values

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "cli": cli.commands,
    "events": classes.events,
    "capsule": classes.capsule,
    "error-codes": classes.error_codes,
    "document": document.success,
    "document-failure": document.failure,
    "limits": limits.limits,
    "manifest-kinds": manifest.kinds,
    "manifest-process": manifest.process,
    "manifest-quality": manifest.quality,
    "manifest-types": manifest.types,
    "projections": projections.tables,
    "states": states.diagram,
    "transitions": states.transitions,
    "next-steps": states.next_steps,
    "typed-hash": hashes.vectors,
    "values-clickhouse": values.clickhouse,
    "values-postgres": values.postgres,
    "figures": figures.figures,
}

LOOSE: Final = frozenset({"figures"})
"""Parts that are measured: ``--check`` leaves them alone, since no two runs measure the same."""
