"""Files that hold one secret: refused where everybody on the machine could read or replace them."""

from __future__ import annotations

import os
import stat


def is_open_to_others(descriptor: int) -> bool:
    """Whether somebody outside of the file's owner and group can read or write it.

    A pipe passes by and is nobody's file. On a read-only mount the modes say nothing: container platforms hand secrets
    over so, readable by all of the container, and decide by the container who sees them.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not status.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        return False
    return not os.fstatvfs(descriptor).f_flag & os.ST_RDONLY
