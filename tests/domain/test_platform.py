"""A platform's history: provisioned once, admitted only as attested, never left without a replica by an exclusion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pytest

from dpone.domain import events as e
from dpone.domain.errors import IllegalTransition
from dpone.domain.event_table import event_from_data
from dpone.domain.platform import Platform, evolve, overlap
from dpone.domain.platform_events import InventoryAdmitted

from . import examples as x
from . import platform_examples as y


def after(*events: e.Event) -> Platform:
    return reduce(evolve, events, Platform())


def illegal(history: Sequence[e.Event], event: e.Event, why: str) -> None:
    platform = after(*history)
    with pytest.raises(IllegalTransition, match=why):
        evolve(platform, event)


class TestProvisioning:
    @pytest.mark.parametrize(
        "event", [y.attested("replica_1"), y.inventory("replica_1"), y.excluded("replica_1"), y.epoch_raised()]
    )
    def test_nothing_precedes_it(self, event: e.Event) -> None:
        illegal((), event, "never provisioned")

    def test_it_happens_once(self) -> None:
        illegal(y.PROVISIONED, y.provisioned(), "provisioned already")

    def test_it_says_who_the_platform_is_and_admits_nobody(self) -> None:
        platform = after(*y.PROVISIONED)
        assert (platform.platform_id, platform.kind, platform.cluster) == ("platform-1", "cluster", "replay_cluster")
        assert (platform.ledger_id, platform.epoch) == (x.RECEIPT, 1)
        assert platform.inventory == ()

    def test_its_databases_are_its_own_and_none_named_means_all(self) -> None:
        assert after(y.provisioned()).covers("sales")
        assert not after(y.provisioned()).covers("marts")
        assert after(y.provisioned(())).covers("marts")

    def test_databases_are_added_never_taken_away(self) -> None:
        assert after(*y.PROVISIONED, y.databases_added("sales", "marts")).databases == ("marts", "sales")
        for event in (y.databases_added(), y.databases_added("marts"), y.databases_added("sales")):
            illegal(y.PROVISIONED, event, "adds no database")
        illegal((y.provisioned(()),), y.databases_added("marts"), "adds no database")

    def test_the_epoch_only_rises(self) -> None:
        assert after(*y.PROVISIONED, y.epoch_raised(3)).epoch == 3
        illegal((*y.PROVISIONED, y.epoch_raised(3)), y.epoch_raised(3), "not a higher one")

    def test_an_operations_event_does_not_belong_to_it(self) -> None:
        illegal(y.PROVISIONED, x.claimed(), "does not belong")


class TestAttestation:
    def test_every_replica_saw_the_same_node(self) -> None:
        assert after(*y.ATTESTED).attested == {"replica_1", "replica_2", "replica_3"}
        illegal(y.PROVISIONED, y.attested("replica_1", czxid="1"), "same node")
        illegal(y.PROVISIONED, y.attested(), "same node")

    def test_only_the_last_one_counts(self) -> None:
        illegal((*y.ATTESTED, y.attested("replica_1")), y.inventory("replica_1", "replica_2"), "not attested")


class TestAdmission:
    def test_what_was_attested_is_admitted_with_its_records(self) -> None:
        platform = after(*y.ADMITTED)
        assert platform.inventory == ("replica_1", "replica_2")
        assert [one.port for one in platform.replicas] == [9001, 9002]

    def test_what_was_not_attested_is_not(self) -> None:
        illegal(y.PROVISIONED, y.inventory("replica_1"), "not attested")
        illegal(y.ATTESTED, y.inventory("replica_1", "replica_4"), "not attested")

    def test_an_inventory_is_neither_empty_nor_ambiguous(self) -> None:
        illegal(y.ATTESTED, y.inventory(), "never empty")
        illegal(y.ATTESTED, y.inventory("replica_1", "replica_1"), "one name")
        twice = InventoryAdmitted(
            at=x.AT, replicas=(y.replica("replica_1"), y.replica("replica_2")), internal_replication="proven"
        )
        illegal(y.ATTESTED, twice, "one server")

    def test_a_replica_leaves_only_by_being_excluded(self) -> None:
        illegal(y.ADMITTED, y.inventory("replica_1"), "leaves only by being excluded")

    def test_the_embedded_platform_needs_no_attestation(self) -> None:
        assert after(y.provisioned(kind="embedded"), y.inventory("embedded")).inventory == ("embedded",)

    def test_what_version_1_recorded_is_still_a_platform(self) -> None:
        history = (
            event_from_data(
                "PlatformProvisioned",
                {"at": x.AT, "epoch": 1, "kind": "embedded", "ledger_id": x.RECEIPT, "platform_id": "p"},
            ),
            event_from_data("InventoryAdmitted", {"at": x.AT, "replicas": ["embedded"]}),
        )
        platform = after(*history)
        assert platform.inventory == ("embedded",)
        assert platform.covers("anything")


class TestExclusion:
    def test_the_inventory_is_what_was_admitted_minus_what_was_excluded(self) -> None:
        platform = after(*y.ADMITTED, y.excluded("replica_1"))
        assert platform.inventory == ("replica_2",)
        assert list(platform.excluded) == ["replica_1"]

    def test_the_last_replica_stays(self) -> None:
        illegal((*y.ADMITTED, y.excluded("replica_1")), y.excluded("replica_2"), "last replica")

    def test_only_an_admitted_replica_is_excluded_and_only_once(self) -> None:
        illegal(y.ADMITTED, y.excluded("replica_3"), "not admitted")
        illegal((*y.ADMITTED, y.excluded("replica_1")), y.excluded("replica_1"), "not admitted")

    def test_it_comes_back_only_through_admission(self) -> None:
        gone = (*y.ADMITTED, y.excluded("replica_1"))
        assert after(*gone, y.attested("replica_1", "replica_2")).inventory == ("replica_2",)
        back = after(*gone, y.inventory("replica_1", "replica_2"))
        assert back.inventory == ("replica_1", "replica_2")
        assert back.excluded == {}

    def test_revoking_empties_the_inventory_until_replicas_are_admitted_again(self) -> None:
        platform = after(*y.ADMITTED, y.revoked())
        assert platform.inventory == ()
        assert platform.revoked
        illegal((*y.ADMITTED, y.revoked()), y.revoked(), "revoked already")
        illegal((*y.ADMITTED, y.revoked()), y.excluded("replica_1"), "not admitted")
        back = after(*y.ADMITTED, y.revoked(), y.inventory("replica_2"))
        assert back.inventory == ("replica_2",)
        assert not back.revoked


class TestAdoption:
    def test_it_speaks_of_every_admitted_replica_or_of_absence(self) -> None:
        after(*y.ADMITTED, y.adopted("replica_1", "replica_2"))
        after(*y.ADMITTED, y.adopted(generation=None))
        illegal(y.ADMITTED, y.adopted("replica_1"), "every admitted replica")

    def test_it_needs_an_inventory_and_a_database_of_this_platform(self) -> None:
        illegal(y.ATTESTED, y.adopted(generation=None), "no replica is admitted")
        elsewhere = (y.provisioned(("marts",)), *y.ADMITTED[1:])
        illegal(elsewhere, y.adopted(generation=None), "another platform's")


@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        (("a",), ("b",), False),
        (("a", "b"), ("b",), True),
        ((), ("b",), True),
        (("a",), (), True),
        ((), (), True),
    ],
)
def test_all_databases_overlap_with_any(mine: tuple[str, ...], others: tuple[str, ...], expected: bool) -> None:
    assert overlap(mine, others) is expected
