"""What one statement does to the names on every replica, and what it does when it comes late or again."""

from __future__ import annotations

import pytest
from clickhouse_driver.errors import ServerException

from dpone.adapters.cluster import session
from dpone.adapters.cluster.dialect import swap_statement
from dpone.domain.errors import EngineFailed
from dpone.domain.names import generation_of
from dpone.domain.ports import Swap, SwapForm
from tests.faults.redirecting import through_relays
from tests.faults.relay import Cut, relay_to

from .conftest import Target

CANDIDATE_AND_TABLE = ["c", "t"]
SWAPPED = ["pred", "t"]


def sent_again(target: Target, swap: Swap) -> int:
    """The statement once more, by nobody who looks whether it is done; the server's error."""
    names = (swap.candidate, swap.arm, swap.table, swap.predecessor)
    with pytest.raises(ServerException) as caught:
        target.cluster.execute(swap_statement(swap.form, target.database, names, target.cluster.name))
    return int(caught.value.code)


def test_a_first_publication_leaves_the_new_table_alone(target: Target) -> None:
    candidate = target.candidate()
    new = target.tables()[0][candidate]
    target.platform.swap(target.swap(candidate, SwapForm.FIRST))
    assert target.tables() == [{"t": new}] * 2


def test_a_guarded_rename_keeps_the_predecessor(target: Target) -> None:
    old = target.publish_first()
    candidate = target.candidate()
    new = target.tables()[0][candidate]
    swap = target.swap(candidate, SwapForm.RENAME)
    target.platform.swap(swap)
    assert target.tables() == [{"t": new, swap.predecessor: old}] * 2


@pytest.mark.parametrize("form", [SwapForm.RENAME, SwapForm.FIRST])
def test_a_swap_that_runs_again_changes_nothing(target: Target, form: SwapForm) -> None:
    if form is SwapForm.RENAME:
        target.publish_first()
    swap = target.swap(target.candidate(), form)
    target.platform.swap(swap)
    before = target.tables()
    assert sent_again(target, swap) == 60
    assert target.tables() == before


@pytest.mark.parametrize("form", [SwapForm.RENAME, SwapForm.FIRST])
def test_what_is_seen_on_every_replica_is_done_though_no_reply_comes(
    target: Target, form: SwapForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form is SwapForm.RENAME:
        target.publish_first()
    with relay_to(target.cluster.replicas[0].port) as relay:
        monkeypatch.setattr(session, "opened", through_relays({target.cluster.replicas[0].port: relay.port}))
        candidate = target.candidate()
        new = target.tables()[0][candidate]
        relay.arm(Cut.SILENT, lambda request: b"ON CLUSTER" in request)
        target.platform.swap(target.swap(candidate, form))
        assert relay.hits == 1
        assert [tables["t"] for tables in target.tables()] == [new, new]


def test_a_swap_whose_candidate_was_fenced_off_leaves_the_live_table(target: Target) -> None:
    """The obvious order, table away and candidate in, would leave no live table here."""
    old = target.publish_first()
    candidate = target.candidate()
    for replica in target.platform.replicas:
        target.platform.rename(replica, target.database, candidate, candidate[:-1] + "2")
    with pytest.raises(EngineFailed):
        target.platform.swap(target.swap(candidate, SwapForm.RENAME))
    assert [tables["t"] for tables in target.tables()] == [old, old]
    assert target.names() == [CANDIDATE_AND_TABLE] * 2


def test_a_direct_swap_reaches_the_replicas_it_names_and_no_other(target: Target) -> None:
    target.publish_first()
    swap = target.swap(target.candidate(), SwapForm.RENAME, ("replica_2",))
    target.platform.swap(swap)
    assert target.names() == [CANDIDATE_AND_TABLE, SWAPPED]


def test_a_rename_that_was_cut_in_the_middle_shows_which_step_it_reached(target: Target) -> None:
    """The server does not undo the steps before the one that fails: here the predecessor's name is taken."""
    old = target.publish_first()
    candidate = target.candidate()
    new = target.tables()[0][candidate]
    swap = target.swap(candidate, SwapForm.RENAME, ("replica_1",))
    target.cluster.execute(f"CREATE TABLE {target.database}.{swap.predecessor} (a Int8) ENGINE = Memory")
    with pytest.raises(EngineFailed) as caught:
        target.platform.swap(swap)
    assert caught.value.engine_code == 57
    tables = target.tables()[0]
    assert (tables["t"], tables[swap.arm]) == (old, new)
    assert tables[swap.predecessor].id == "local:Memory"


def test_a_cut_between_the_last_two_steps_leaves_no_live_table_and_both_under_their_names(target: Target) -> None:
    old = target.publish_first()
    candidate = target.candidate()
    new = target.tables()[0][candidate]
    swap = target.swap(candidate, SwapForm.RENAME)
    target.platform.rename("replica_1", target.database, candidate, swap.arm)
    target.platform.rename("replica_1", target.database, "t", swap.predecessor)
    assert target.tables()[0] == {swap.arm: new, swap.predecessor: old}
    with pytest.raises(EngineFailed):  # the statement itself, late
        target.platform.swap(target.swap(candidate, SwapForm.RENAME, ("replica_1",)))
    assert target.tables()[0] == {swap.arm: new, swap.predecessor: old}
    target.platform.rename("replica_1", target.database, swap.arm, "t")
    assert target.tables()[0] == {"t": new, swap.predecessor: old}


def test_the_queue_reports_what_became_of_each_statement(target: Target) -> None:
    candidate = target.candidate()
    target.platform.swap(target.swap(candidate, SwapForm.FIRST))
    assert sent_again(target, target.swap(candidate, SwapForm.FIRST)) == 60
    told = target.platform.reported(candidate)
    assert set(told) == {"replica_1", "replica_2"}
    assert told["replica_2"].endswith("RENAME carried out, RENAME failed (60 UNKNOWN_TABLE)")
    assert target.platform.reported("__dpone_t_nothing") == {}


def test_18_16_exchanges_nothing(target: Target) -> None:
    assert target.platform.exchanges(target.database) is False


def test_the_keeper_path_is_the_generations_own(target: Target) -> None:
    candidate = target.candidate()
    generation = generation_of(candidate)
    assert generation is not None
    assert {tables[candidate].id.rsplit("/", 1)[1] for tables in target.tables()} == {generation}
