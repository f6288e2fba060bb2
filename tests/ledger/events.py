"""Small events of the ledger's own tests, so that they stand whatever the product's events become."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpone.ledger.mapper import EventCodec


@dataclass(frozen=True, slots=True)
class Noted:
    """Somebody wrote something down."""

    text: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """Nothing more will be noted."""

    reason: str


TYPES: dict[str, type[Any]] = {"Noted": Noted, "Closed.v2": Closed}


def from_data(topic: str, data: Any) -> Any:
    try:
        return TYPES[topic](**data)
    except (KeyError, TypeError) as error:
        raise ValueError("does not fit") from error


CODEC = EventCodec(TYPES, asdict, from_data)
