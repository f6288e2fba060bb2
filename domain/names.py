"""The names of the tables that this product creates beside a target.

Every name carries the generation, and a candidate's also the attempt that made it, so that no two attempts ever use
one name as a destination and a late statement cannot hit what it was not written for.
"""

from __future__ import annotations

from .limits import TABLE_NAME_BYTES_MAX

_PREFIX = "__dpone_"
_FENCE_DIGITS = 12


def generation_prefix(table: str, generation: str) -> str:
    """What all names of one generation begin with. ``generation`` is a UUID with or without dashes."""
    return f"{_PREFIX}{table}_{generation.replace('-', '')}_"


def candidate_name(table: str, generation: str, epoch: int, fence: int) -> str:
    """The new generation's table before it is swapped in: made by attempt ``fence`` for publication ``epoch``."""
    return f"{generation_prefix(table, generation)}c{epoch}_{fence}"


def predecessor_name(table: str, generation: str) -> str:
    """Where the table that ``generation`` replaced is kept."""
    return f"{generation_prefix(table, generation)}pred"


def is_candidate_name(name: str, table: str, generation: str) -> bool:
    """Whether a swap of this generation could still use the name (candidates and arms)."""
    prefix = generation_prefix(table, generation)
    return name.startswith((f"{prefix}c", f"{prefix}a"))


def name_problem(table: str) -> str | None:
    """Why the longest name of any later step would not fit, or None. Checked before anything is staged."""
    nines = "9" * _FENCE_DIGITS
    longest = f"{generation_prefix(table, '0' * 32)}c{nines}_{nines}_retired_{nines}"
    excess = len(longest.encode()) - TABLE_NAME_BYTES_MAX
    if excess <= 0:
        return None
    return f"The table's name is {excess} bytes too long: the names of its candidates would not fit the server's limit."
