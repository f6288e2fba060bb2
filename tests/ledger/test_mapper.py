"""The closed table: topics come from it alone, and the product's own events pass through it unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from dpone.domain.events import AttemptStarted, By, Event
from dpone.domain.ports import Recorded, StreamAppend
from dpone.ledger.chain import GENESIS, ChainBroken
from dpone.ledger.mapper import EventCodec, Mapper, domain_codec
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger

from .events import CODEC, NOW, Closed, Noted

APPEND = "0" * 32


def test_an_event_outside_the_table_is_not_stored() -> None:
    @dataclass(frozen=True, slots=True)
    class Stray(Event):
        pass

    with pytest.raises(ValueError, match="Stray is not in the table"):
        Mapper(CODEC).to_stored(Recorded(uuid4(), 1, Stray(at=NOW)), GENESIS, APPEND)


def test_a_class_is_written_under_its_latest_topic_and_read_under_all() -> None:
    codec = EventCodec({"Noted": Noted, "Noted.v2": Noted}, CODEC.to_data, lambda _, data: Noted(**data))
    mapper, stream = Mapper(codec), UUID(int=1)
    stored, _ = mapper.to_stored(Recorded(stream, 1, Noted("a")), GENESIS, APPEND)
    assert stored.topic == "Noted.v2"
    old, _ = Mapper(CODEC).to_stored(Recorded(stream, 1, Noted("old")), GENESIS, APPEND)
    assert old.topic == "Noted"
    assert mapper.decode(stream, old, mapper.check(stream, old)).event == Noted("old")


@pytest.mark.parametrize("topic", ["os:system", "builtins", "tests.ledger.events:Noted", "Noted.v9"])
def test_a_stored_topic_never_names_what_to_import(topic: str) -> None:
    stream = uuid4()
    writer = Mapper(EventCodec({topic: Closed}, CODEC.to_data, CODEC.from_data))
    stored, _ = writer.to_stored(Recorded(stream, 1, Closed("x")), GENESIS, APPEND)
    reader = Mapper(CODEC)
    with pytest.raises(ChainBroken, match="does not know its topic"):
        reader.decode(stream, stored, reader.check(stream, stored))


def test_the_products_events_come_back_as_they_were(tmp_path: Path) -> None:
    stream = uuid4()
    event = AttemptStarted(
        at=NOW,
        attempt=1,
        by=By(os_user="u", host="h", version="0.1.0"),
        manifest_sha256=None,
        revision=None,
        task_id="load",
        map_index=0,
        try_number=1,
        task_instance=None,
    )
    with open_ledger(sqlite_url(tmp_path / "ledger.sqlite"), create=True) as ledger:
        ledger.append([StreamAppend(stream, 0, (event,))])
        assert ledger.read(stream) == [Recorded(stream, 1, event)]
    assert domain_codec().topic_of(event) == "AttemptStarted.v2"
