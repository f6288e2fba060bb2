"""How long each kind of wait may last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds. After a bound the outcome of a statement is unknown, and only a look says what became of it.

    ``connect`` bounds the greeting too, which a server that hangs does not give. ``look`` is long because an old server
    shows no tables while a rename waits for a running SELECT. ``glance`` bounds a look that may be done without.
    ``everywhere`` is how long a server waits for all replicas to carry out a statement of the cluster; a replica
    that is late carries it out later. ``insert`` and ``scan`` bound a server's silence: one that works reports progress
    all the time. ``synchronise`` bounds the whole wait for equal replicas.
    """

    connect: float = 5.0
    look: float = 60.0
    glance: float = 0.5
    statement: float = 120.0
    everywhere: int = 120
    insert: float = 300.0
    scan: float = 300.0
    synchronise: float = 900.0
