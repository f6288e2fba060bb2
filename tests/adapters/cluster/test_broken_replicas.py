"""A replica that is stopped or frozen while each of the platform's methods needs it: bounded, named, nothing lost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

from dpone.adapters.cluster.bounds import Bounds
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.ports import SwapForm
from dpone.domain.tables import Metrics

from .conftest import COLUMNS, DEFINITION, Target, eventually, platform_on

pa = pytest.importorskip("pyarrow")

SHORT = Bounds(connect=1.0, look=1.0, statement=1.0, everywhere=2, insert=1.0, scan=1.0, synchronise=2.0)
LONGEST_SECONDS = 8.0

Call = Callable[[Target, str], Any]


def batches() -> Any:
    one = pa.record_batch([pa.array(range(1000), pa.int64()), pa.array(["x"] * 1000)], ["a", "b"])
    return [one] * 100


def prepared(target: Target) -> ReplicatedPlatform:
    target.platform.prepare(target.database)
    return target.platform


CALLS: dict[str, tuple[str, Call]] = {
    "refusals": ("replica_2", lambda t, _: t.platform.refusals(t.ref, DEFINITION)),
    "refusals, prepared": ("replica_2", lambda t, _: prepared(t).refusals(t.ref, DEFINITION)),
    "exchanges": ("replica_2", lambda t, _: t.platform.exchanges(t.database)),
    "create": ("replica_2", lambda t, _: t.candidate()),
    "fill": ("replica_1", lambda t, c: t.platform.fill(t.database, c, COLUMNS, batches())),
    "synchronise": ("replica_2", lambda t, c: t.platform.synchronise(t.database, c)),
    "row_count": ("replica_2", lambda t, c: t.platform.row_count(t.database, c)),
    "observe": ("replica_1", lambda t, c: t.platform.observe(t.database, c, COLUMNS, Metrics())),
    "swap": ("replica_2", lambda t, c: t.platform.swap(t.swap(c, SwapForm.FIRST))),
    "swap through it": ("replica_1", lambda t, c: t.platform.swap(t.swap(c, SwapForm.FIRST))),
    "swap on it": ("replica_2", lambda t, c: t.platform.swap(t.swap(c, SwapForm.FIRST, ("replica_1", "replica_2")))),
    "rename": ("replica_2", lambda t, c: t.platform.rename("replica_2", t.database, c, "t")),
    "drop": ("replica_2", lambda t, c: t.platform.drop("replica_2", t.database, c, t.known[c])),
    "rebuild on it": ("replica_2", lambda t, c: t.platform.rebuild("replica_2", t.database, c, DEFINITION, t.known[c])),
    "rebuild from it": (
        "replica_1",
        lambda t, c: t.platform.rebuild("replica_2", t.database, c, DEFINITION, t.known[c]),
    ),
}


def broken(target: Target, replica: str, how: str) -> None:
    server = next(one for one in target.cluster.replicas if one.name == replica)
    (server.freeze if how == "frozen" else server.kill)()


@pytest.mark.parametrize("how", ["frozen", "stopped"])
@pytest.mark.parametrize("method", CALLS)
def test_every_method_ends_within_its_bound_and_says_so(breakable: Target, method: str, how: str) -> None:
    breakable.platform = platform_on(breakable.cluster, SHORT)
    candidate = breakable.candidate(rows=3) if method != "create" else ""
    breakable.known = breakable.tables()[0]
    replica, call = CALLS[method]
    broken(breakable, replica, how)
    began = time.monotonic()
    with pytest.raises(EngineFailed) as caught:
        call(breakable, candidate)
    assert time.monotonic() - began < LONGEST_SECONDS
    assert caught.value.code is ErrorCode.REPLICA_UNREACHABLE
    assert caught.value.next


@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_a_look_shows_the_others_and_which_one_does_not_answer(breakable: Target, how: str) -> None:
    breakable.platform = platform_on(breakable.cluster, SHORT)
    breakable.publish_first()
    broken(breakable, "replica_1", how)
    first, second = breakable.platform.look(breakable.ref)
    assert (first.replica, first.reachable, second.replica, second.reachable) == ("replica_1", False, "replica_2", True)
    assert list(second.tables) == ["t"]


@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_a_report_comes_from_another_replica(breakable: Target, how: str) -> None:
    breakable.platform = platform_on(breakable.cluster, SHORT)
    candidate = breakable.candidate()
    broken(breakable, "replica_1", how)
    assert breakable.platform.reported(candidate)["replica_2"].startswith("CREATE carried out")


@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_a_report_tells_who_is_late_and_never_fails(breakable: Target, how: str) -> None:
    breakable.platform = platform_on(breakable.cluster, SHORT)
    candidate = breakable.candidate()
    broken(breakable, "replica_2", how)
    with pytest.raises(EngineFailed):
        breakable.platform.swap(breakable.swap(candidate, SwapForm.FIRST))
    told = breakable.platform.reported(candidate)
    assert told["replica_1"].endswith("RENAME carried out")
    assert told["replica_2"].endswith("RENAME not carried out yet")
    broken(breakable, "replica_1", how)
    assert breakable.platform.reported(candidate) == {}


@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_a_swap_that_timed_out_runs_later_and_once(breakable: Target, how: str) -> None:
    """The statement stays in the queue: unknown until it is looked at, and then the same on every replica."""
    old = breakable.publish_first()
    breakable.platform = platform_on(breakable.cluster, SHORT)
    candidate = breakable.candidate()
    new = breakable.tables()[0][candidate]
    swap = breakable.swap(candidate, SwapForm.RENAME)
    broken(breakable, "replica_2", how)
    with pytest.raises(EngineFailed) as caught:
        breakable.platform.swap(swap)
    assert (caught.value.code, caught.value.engine_code) == (ErrorCode.REPLICA_UNREACHABLE, 159)
    first, second = breakable.platform.look(breakable.ref)
    assert (first.tables, second.reachable) == ({"t": new, swap.predecessor: old}, False)
    breakable.cluster.start()
    eventually(lambda: breakable.tables()[1] == {"t": new, swap.predecessor: old})


def test_a_late_swap_finds_nothing_on_a_fenced_replica(breakable: Target) -> None:
    """Its replica was away while the statement was sent; before it comes to run there, the candidate was renamed."""
    old = breakable.publish_first()
    breakable.platform = platform_on(breakable.cluster, SHORT)
    candidate = breakable.candidate()
    new = breakable.tables()[0][candidate]
    fenced = candidate.replace("_c1_1", "_c2_2")
    breakable.platform.rename("replica_2", breakable.database, candidate, fenced)
    broken(breakable, "replica_2", "stopped")
    with pytest.raises(EngineFailed):
        breakable.platform.swap(breakable.swap(candidate, SwapForm.RENAME))
    breakable.cluster.start()
    eventually(lambda: "RENAME failed" in breakable.platform.reported(candidate).get("replica_2", ""))
    assert breakable.tables()[1] == {"t": old, fenced: new}


def test_a_replica_whose_folder_is_empty_gets_its_generation_back(breakable: Target) -> None:
    """At the recorded Keeper path, from the other replica, under the name of this attempt."""
    identity = breakable.publish_first(rows=500)
    first, second = breakable.cluster.replicas
    second.kill()
    shutil.rmtree(second.folder / "data")
    breakable.cluster.start()
    assert [list(tables) for tables in breakable.tables()] == [["t"], []]
    candidate = f"__dpone_t_{identity.id.rsplit('/', 1)[1]}_c2_2"
    for _ in range(2):  # an attempt that died after creating it comes again
        breakable.platform.rebuild("replica_2", breakable.database, candidate, DEFINITION, identity)
    assert breakable.tables()[1] == {candidate: identity}
    assert second.execute(f"SELECT count(), sum(a) FROM {breakable.database}.{candidate}") == [(500, 124_750)]
    breakable.platform.swap(breakable.swap(candidate, SwapForm.FIRST, ("replica_2",)))
    first.execute(f"INSERT INTO {breakable.database}.t VALUES", [(1000, None)])
    breakable.platform.synchronise(breakable.database, "t")
    assert breakable.platform.row_count(breakable.database, "t") == {"replica_1": 501, "replica_2": 501}


def test_what_no_replica_has_cannot_be_rebuilt(target: Target) -> None:
    candidate = target.candidate()
    identity = target.tables()[0][candidate]
    for replica in target.platform.replicas:
        target.platform.drop(replica, target.database, candidate, identity)
    with pytest.raises(EngineFailed) as caught:
        target.platform.rebuild("replica_2", target.database, candidate, DEFINITION, identity)
    assert caught.value.code is ErrorCode.PUBLICATION_UNKNOWN
    assert target.names() == [[], []]
