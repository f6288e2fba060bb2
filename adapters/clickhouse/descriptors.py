"""Room for the engine's descriptors: it loses 9 to 18 of them whenever it was opened, filled and closed again."""

from __future__ import annotations

import contextlib
import resource
from typing import Final

DESCRIPTORS_WANTED: Final = 65_536


def raise_limit(wanted: int = DESCRIPTORS_WANTED) -> int:
    """Raise this process's soft limit of open files, as far as its hard limit allows; never lower it.

    The usual soft limit of 1,024 would end a ``run --all`` of some dozens of processes. Gives the limit that holds now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= reachable:
        return soft
    with contextlib.suppress(OSError, ValueError):  # a kernel that refuses leaves everything as it was
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
