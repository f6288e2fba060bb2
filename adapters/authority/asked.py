"""What every platform command is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...domain.events import By
from ..connections.connection import Connection

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

OpenLedger = Callable[[bool], "EventLedger"]
"""Opens the ledger that was asked for; the argument tells whether a missing one may be created."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which cluster, through which connection, who asks, and the moment (shown, never compared)."""

    connection: Connection
    cluster: str
    by: By
    now: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command did: ``changes`` one sentence each, empty when everything was so already; ``result`` for JSON."""

    changes: tuple[str, ...]
    result: dict[str, Any]
