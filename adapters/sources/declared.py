"""Declared columns against the columns that are really there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from ...domain.tables import Column
from ...domain.types import ColumnType, UnsupportedType, parse_type
from .refusals import declaration, shown

ExtraColumns = Literal["refuse", "ignore"]


def check_same_set(declared: Sequence[Column], present: Sequence[str], extra: ExtraColumns, name: str) -> None:
    """Raise DPONE_MANIFEST_INVALID unless both name the same set, each once. ``extra`` may forgive undeclared ones."""
    names = [column.name for column in declared]
    problems = [
        *_problem("declared twice", [n for n, count in Counter(names).items() if count > 1]),
        *_problem(f"twice in {shown(name)}", [n for n, count in Counter(present).items() if count > 1]),
        *_problem(f"declared, but not in {shown(name)}", [n for n in dict.fromkeys(names) if n not in set(present)]),
    ]
    if extra == "refuse":
        undeclared = [n for n in dict.fromkeys(present) if n not in set(names)]
        problems += _problem(f"in {shown(name)}, but not declared", undeclared)
    if problems:
        raise declaration(
            f"The declared columns do not fit {shown(name)}: {problems[0]}",
            "Correct sink.columns (or set source.options.extra_columns: ignore for columns that are not wanted).",
            tuple(problems),
        )


def _problem(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return [f"{what}: {', '.join(shown(name) for name in names[:10])}{more}."]


def parsed(columns: Sequence[Column]) -> tuple[ColumnType, ...]:
    """Each column's type. Raises DPONE_MANIFEST_INVALID for one that is not supported."""
    return tuple(_parse(column) for column in columns)


def _parse(column: Column) -> ColumnType:
    try:
        return parse_type(column.type)
    except UnsupportedType as error:
        raise declaration(f"Column {shown(column.name)}: {error}", "Choose a supported type in sink.columns.") from None


def canonical(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The same columns with canonical type names."""
    return tuple(Column(column.name, str(_parse(column))) for column in columns)
