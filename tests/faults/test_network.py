"""Every way to cut a connection at every phase, between a run and its servers: then the same command finishes.

The first diagonal runs always: every phase, and every cut some times. DPONE_TEST_PROFILE=thorough runs all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpone.domain.errors import ErrorCode
from tests.integration.clickhouse_cluster.route import lines_of

from .network import Network
from .phases import PHASES, Phase
from .promises import UNFINISHED, Expected, check_ending, check_finished, check_live
from .relay import Cut

THOROUGH = os.environ.get("DPONE_TEST_PROFILE") == "thorough"
CUTS = tuple(cut for cut in Cut if cut is not Cut.LATE)
"""What is late is for whoever can tell it from what came in time: the stores' own tests."""
CASES = [
    pytest.param(phase, cut, id=f"{phase.name}, {cut}")
    for row, phase in enumerate(PHASES.values())
    for column, cut in enumerate(CUTS)
    if THOROUGH or row % len(CUTS) == column
]


@pytest.mark.parametrize(("phase", "cut"), CASES)
def test_a_cut_here_and_the_same_command_finishes(
    phase: Phase, cut: Cut, network: Network, record: Callable[[str], Path]
) -> None:
    route, relay = network.route, network.relays[phase.relay]
    generation = max(route.rows)
    run_id, before, hits = f"r{generation}", generation - 1, relay.hits
    relay.arm(cut, phase.when)

    faulted = network.run(record("faulted"), "none", run_id)

    assert relay.hits == hits + 1, "the run never came to this phase"
    check_ending(faulted, UNFINISHED | _of_the_source(phase))
    network.disarm()
    check_live(route, before, generation)
    expected = Expected.of(route, run_id, generation)
    assert not (phase.capsule and expected.reads), "evidence was lost"
    finished = network.run(record("finished"), "none", run_id)
    records = [lines_of(record(name)) for name in ("faulted", "finished")]
    check_finished(route, expected, finished, records)


def _of_the_source(phase: Phase) -> set[str]:
    return {ErrorCode.SOURCE_UNREADABLE.value} if phase.relay == "source" else set()
