"""The names of the tables that this product creates beside a target.

Every name carries the generation, and a candidate's also the attempt that made it, so that no two attempts ever use
one name as a destination and a late statement cannot hit what it was not written for.
"""

from __future__ import annotations

import re

from .limits import TABLE_NAME_BYTES_MAX

_PREFIX = "__dpone_"
_GENERATION = re.compile(r"__dpone_.*_([0-9a-f]{32})_[acpr][a-z0-9_]*", re.DOTALL)
_RETIRED = re.compile(r"_retired_[0-9]+\Z")
_FENCE_DIGITS = 12


def generation_prefix(table: str, generation: str) -> str:
    """What all names of one generation begin with. ``generation`` is a UUID with or without dashes."""
    return f"{_PREFIX}{table}_{generation.replace('-', '')}_"


def candidate_name(table: str, generation: str, epoch: int, fence: int) -> str:
    """The new generation's table before it is swapped in: made by attempt ``fence`` for publication ``epoch``."""
    return f"{generation_prefix(table, generation)}c{epoch}_{fence}"


def arm_name(table: str, generation: str, epoch: int, fence: int) -> str:
    """Where a rename puts the candidate first: only the statement of attempt ``fence`` for ``epoch`` names it."""
    return f"{generation_prefix(table, generation)}a{epoch}_{fence}"


def rebuilding_name_of(candidate: str, table: str, generation: str) -> str:
    """Where a lost table is made again before it is called ``candidate``: until then no look and no statement takes
    it for the generation, so that a rebuild that was cut is not published without its rows."""
    prefix = generation_prefix(table, generation)
    return f"{prefix}r{candidate.removeprefix(f'{prefix}c')}"


def is_rebuilding_name(name: str, table: str, generation: str) -> bool:
    """Whether the table may still lack rows."""
    return name.startswith(f"{generation_prefix(table, generation)}r")


def generation_of(name: str) -> str | None:
    """The 32 hexadecimal digits of the generation that a name of this product carries; None for any other name."""
    match = _GENERATION.fullmatch(name)
    return match[1] if match is not None else None


def predecessor_name(table: str, generation: str) -> str:
    """Where the table that ``generation`` replaced is kept."""
    return f"{generation_prefix(table, generation)}pred"


def is_predecessor_name(name: str) -> bool:
    """Whether some generation's predecessor is kept under this name."""
    return generation_of(name) is not None and name.endswith("_pred")


def is_candidate_name(name: str, table: str, generation: str) -> bool:
    """Whether a swap of this generation could still use the name (candidates and arms)."""
    prefix = generation_prefix(table, generation)
    return name.startswith((f"{prefix}c", f"{prefix}a"))


def retired_name(name: str, fence: int) -> str:
    """Where attempt ``fence`` of a reviewed recovery puts a candidate or arm: no statement ever names it."""
    return f"{name}_retired_{fence}"


def is_retired_name(name: str) -> bool:
    """Whether a reviewed recovery put the table aside."""
    return _RETIRED.search(name) is not None


def name_problem(table: str) -> str | None:
    """Why the longest name of any later step would not fit, or None. Checked before anything is staged."""
    nines = "9" * _FENCE_DIGITS
    longest = f"{generation_prefix(table, '0' * 32)}c{nines}_{nines}_retired_{nines}"
    excess = len(longest.encode()) - TABLE_NAME_BYTES_MAX
    if excess <= 0:
        return None
    return f"The table's name is {excess} bytes too long: the names of its candidates would not fit the server's limit."
