"""Events to stored events and back, by a closed table.

A stored topic is looked up in the table of event classes and nowhere else: no module is ever imported, and no class
ever built, because stored data names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from ..domain.ports import Recorded
from .chain import ChainBroken, Link, seal, unseal

Event = Any  # dpone.domain.events.Event, or a test's own classes


@dataclass(frozen=True, slots=True)
class EventCodec:
    """The closed table of event classes by topic, and how their fields become JSON values and events again.

    A class that stands under several topics is written under the last of them; the earlier ones are still read.
    ``from_data`` raises ValueError for a topic it does not know and for data that does not fit.
    """

    types: Mapping[str, type[Any]]
    to_data: Callable[[Event], Mapping[str, Any]]
    from_data: Callable[[str, Any], Event]
    topics: Mapping[type[Any], str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", {kind: topic for topic, kind in self.types.items()})

    def topic_of(self, event: Event) -> str:
        """The name under which ``event`` is stored. Raises ValueError for a class outside the table."""
        topic = self.topics.get(type(event))
        if topic is None:
            raise ValueError(f"{type(event).__name__} is not in the table of events")
        return topic


def domain_codec() -> EventCodec:
    """The product's own events."""
    from ..domain.event_table import EVENT_TYPES, event_from_data, event_to_data

    return EventCodec(EVENT_TYPES, event_to_data, event_from_data)


@dataclass(frozen=True, slots=True)
class Mapper:
    """Recorded events to stored events and back."""

    codec: EventCodec

    def to_stored(self, recorded: Recorded, previous: str, append_id: str) -> tuple[StoredEvent, str]:
        """The row to insert and its digest. Raises ValueError for an event outside the table."""
        topic = self.codec.topic_of(recorded.event)
        data = self.codec.to_data(recorded.event)
        state, digest = seal(recorded.stream, recorded.version, topic, data, previous, append_id)
        return StoredEvent(recorded.stream, recorded.version, topic, state), digest

    def check(self, stream: UUID, stored: StoredEvent) -> Link:
        """Check one stored event by itself. Raises ChainBroken."""
        if type(stored.originator_version) is not int or not isinstance(stored.topic, str):
            raise ChainBroken("its version or topic is not stored as such")
        return unseal(stream, stored.originator_version, stored.topic, stored.state)

    def decode(self, stream: UUID, stored: StoredEvent, link: Link) -> Recorded:
        """The event, after its bytes were checked. Raises ChainBroken for an unknown topic or a shape that is off."""
        if stored.topic not in self.codec.types:
            raise ChainBroken("this version does not know its topic")
        try:
            event = self.codec.from_data(stored.topic, link.data)
        except ValueError as error:
            raise ChainBroken("its fields do not fit its topic") from error
        return Recorded(stream, stored.originator_version, event)
