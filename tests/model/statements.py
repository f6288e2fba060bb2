"""Publication statements as servers run them, measured: one replica, in its own time, perhaps twice, perhaps in part.

An EXCHANGE needs both names, is atomic, and undoes itself when it runs again. A RENAME of several tables goes step by
step; what was done stays done when a later step fails or the server dies. Between two steps others can look, but no
other statement on the same names gets through. An entry of the distributed queue whose "finished" mark was not
written is run again from its first step; a statement that was sent directly is not.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpone.domain.ports import Swap, SwapForm

if TYPE_CHECKING:
    from .world import Table

STEPS_MAX = 3
FATES = ("", "late", "lost", "twice", "cut 1", "cut 2", "midway 1", "midway 2")
"""What becomes of a statement: it runs now; later; never; now and once more; it is cut after so many steps; it stands
after so many steps for a while."""


@dataclass(eq=False, slots=True)
class Statement:
    """A swap on one replica. ``queued``: by an entry of the distributed queue. ``runs``: how often it began."""

    replica: str
    swap: Swap
    queued: bool = False
    runs: int = 0

    def __str__(self) -> str:
        return f"{self.swap.form} {self.swap.candidate} on {self.replica}"


def renames(swap: Swap) -> list[tuple[str, str]]:
    """The steps of a rename, in their order."""
    steps = [(swap.candidate, swap.arm), (swap.table, swap.predecessor), (swap.arm, swap.table)]
    if swap.form is SwapForm.FIRST:
        del steps[1]
    return steps


def exchange(tables: MutableMapping[str, Table], swap: Swap) -> bool:
    """Whether both were there; then each has the other's name."""
    if swap.candidate not in tables or swap.table not in tables:
        return False
    tables[swap.candidate], tables[swap.table] = tables[swap.table], tables[swap.candidate]
    return True


def rename(tables: MutableMapping[str, Table], old: str, new: str) -> bool:
    """Whether the table was there and its new name free."""
    if old not in tables or new in tables:
        return False
    tables[new] = tables.pop(old)
    return True
