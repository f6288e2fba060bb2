"""Small events of the ledger's own tests, so that they stand whatever the product's events become."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import uuid4

from dpone.domain.events import Event
from dpone.domain.ports import StreamAppend
from dpone.ledger.mapper import EventCodec

NOW = "2026-12-02T04:00:00.000000Z"


@dataclass(frozen=True, slots=True)
class Noted(Event):
    """Somebody wrote something down."""

    at: str = field(default=NOW, kw_only=True)
    text: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """Nothing more will be noted."""

    at: str = field(default=NOW, kw_only=True)
    reason: str


TYPES: dict[str, type[Any]] = {"Noted": Noted, "Closed.v2": Closed}


def from_data(topic: str, data: Any) -> Any:
    try:
        return TYPES[topic](**data)
    except (KeyError, TypeError) as error:
        raise ValueError("does not fit") from error


CODEC = EventCodec(TYPES, asdict, from_data)


def some() -> StreamAppend:
    """One event at the start of a stream of its own."""
    return StreamAppend(uuid4(), 0, (Noted("a"),))
