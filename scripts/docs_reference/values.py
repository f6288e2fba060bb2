"""How each type of a server travels: the tables in the docstrings of the modules that do it."""

from __future__ import annotations

import re

from .pages import table

_RULE = re.compile(r"^=+(?: +=+)+$")


def clickhouse() -> str:
    """What is carried from a ClickHouse server."""
    from dpone.adapters.sources import clickhouse_types

    return _as_markdown(clickhouse_types.__doc__ or "")


def postgres() -> str:
    """What is carried from a PostgreSQL server."""
    from dpone.adapters.sources import postgres_types

    return _as_markdown(postgres_types.__doc__ or "")


def _as_markdown(docstring: str) -> str:
    """The one simple table of a docstring. Raises ValueError unless there is exactly one."""
    lines = docstring.splitlines()
    rules = [number for number, line in enumerate(lines) if _RULE.match(line)]
    if len(rules) != 3:
        raise ValueError("the docstring does not hold exactly one table")
    starts = [found.start() for found in re.finditer(r"=+", lines[rules[0]])]
    head, *rows = (_cells(line, starts) for line in (lines[rules[0] + 1], *lines[rules[1] + 1 : rules[2]]))
    return table(head, rows)


def _cells(line: str, starts: list[int]) -> tuple[str, ...]:
    ends = [*starts[1:], len(line)]
    return tuple(line[start:end].strip() for start, end in zip(starts, ends, strict=True))
