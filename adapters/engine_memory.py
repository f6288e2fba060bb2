"""Lets the embedded engine give unused memory back after half a second, where it would keep it for five.

A load fills block after block, and what the engine keeps of those it has written comes on top of those that it is
filling: over five seconds, that is a quarter of a load's peak. Its allocator (jemalloc) reads this once, when the
engine's library is loaded. The processes that are the product's own do this; a program that uses the product decides
for itself.
"""

from __future__ import annotations

import os
from typing import Final

_VARIABLE: Final = "JE_MALLOC_CONF"


def give_back_soon() -> None:
    """Before the engine is imported, and before there is a second thread. An operator's own setting stays."""
    os.environ.setdefault(_VARIABLE, "dirty_decay_ms:500")
