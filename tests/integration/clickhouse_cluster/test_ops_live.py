"""Decisions on real servers: ended where replicas differ, rolled back, reopened, swept. Read off the servers."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from dpone.domain.names import arm_name, candidate_name, is_candidate_name, is_retired_name, predecessor_name
from dpone.domain.operation import State
from tests.cli.sandbox import Ended

from .route import TABLE, Route

FIRST, SECOND, THIRD = 1, 2, 3
REVIEW = ("--reviewed-by", "Ada", "--reason", "the night is skipped")


def stopped(route: Route, folder: Path, point: str) -> str:
    """Run r1 completed, r2 was killed at the point; the operation's id."""
    assert route.run("r1").code == 0
    route.write_source(SECOND)
    killed = route.acted(folder / "killed", f"kill@{point}", "r2")
    assert killed.code == -signal.SIGKILL, killed
    found = route.found("r2")
    assert found is not None
    return str(found.stream)


def decide(route: Route, verb: str, operation: str, *rest: str) -> Ended:
    return route.sandbox.dpone("ops", verb, operation, *REVIEW, *rest, "--format", "json", seconds=120)


def generation(route: Route) -> str:
    found = route.found("r2")
    assert found is not None
    assert found.operation.generation is not None
    return found.operation.generation.id


def names_of(minted: str) -> tuple[str, str, str]:
    """Candidate, arm and predecessor of the first attempt's first epoch."""
    return candidate_name(TABLE, minted, 1, 1), arm_name(TABLE, minted, 1, 1), predecessor_name(TABLE, minted)


def check_ended(route: Route, live: int) -> None:
    found = route.found("r2")
    assert found is not None
    assert found.operation.state is State.RETIRED
    assert (found.slot.holder, found.slot.guard) == (None, None)
    assert route.live() == [live] * len(route.cluster.replicas)
    for names in route.names():
        left = [name for name in names if is_candidate_name(name, TABLE, generation(route))]
        assert all(is_retired_name(name) for name in left), left
    assert route.findings() == []
    route.write_source(THIRD)
    assert route.run("r3").code == 0
    route.check_settled("r3", THIRD)


@pytest.mark.parametrize(("point", "live"), [("swap#1:before", FIRST), ("swap#1:after", SECOND)])
def test_ended_where_all_replicas_agree(route: Route, tmp_path: Path, point: str, live: int) -> None:
    operation = stopped(route, tmp_path, point)
    refused = decide(route, "retire", operation, "--yes", operation)
    assert (refused.code, refused.details["next"].partition(" --")[0]) == (2, f"dpone ops resume {operation}"), refused
    done = decide(route, "retire", operation, "--yes", operation, "--evidence", "the host of the worker burned down")
    assert done.code == 0, done
    check_ended(route, live)


def test_replicas_that_differ_are_settled_first(route: Route, tmp_path: Path) -> None:
    operation = stopped(route, tmp_path, "swap#1:before")
    candidate, arm, kept = names_of(generation(route))
    swap = ((candidate, arm), (TABLE, kept), (arm, TABLE))
    steps = ", ".join(f"{route.database}.{old} TO {route.database}.{new}" for old, new in swap)
    route.cluster.replicas[0].execute(f"RENAME TABLE {steps}")
    done = decide(route, "retire", operation, "--yes", operation, "--evidence", "the host of the worker burned down")
    assert done.code == 0, done
    check_ended(route, SECOND)


def test_a_cut_rename_is_given_its_table_back(route: Route, tmp_path: Path) -> None:
    operation = stopped(route, tmp_path, "swap#1:before")
    candidate, arm, kept = names_of(generation(route))
    replica = route.cluster.replicas[0]
    replica.execute(f"RENAME TABLE {route.database}.{candidate} TO {route.database}.{arm}")
    replica.execute(f"RENAME TABLE {route.database}.{TABLE} TO {route.database}.{kept}")
    done = decide(route, "retire", operation, "--yes", operation, "--evidence", "the host of the worker burned down")
    assert done.code == 0, done
    check_ended(route, FIRST)


def test_every_replica_must_answer(breakable_route: Route, tmp_path: Path) -> None:
    route = breakable_route
    operation = stopped(route, tmp_path, "swap#1:before")
    before = route.found("r2")
    last = route.cluster.replicas[-1]
    last.freeze()
    try:
        refused = decide(route, "retire", operation, "--yes", operation, "--evidence", "tried")
    finally:
        last.thaw()
        last.wait_ready()
    assert (refused.code, refused.result["error_code"]) == (1, "DPONE_PUBLICATION_REPLICA_UNREACHABLE"), refused
    after = route.found("r2")
    assert before is not None
    assert after is not None
    assert after.events == before.events, "a refusal appended something"
    assert route.run("r2").code == 0


def test_rolled_back_reopened_and_swept(route: Route) -> None:
    for number in (FIRST, SECOND):
        route.write_source(number)
        assert route.run(f"r{number}").code == 0
    target = f"{route.database}.{TABLE}"
    listed = route.sandbox.dpone("ops", "rollback", target, "--format", "json")
    kept = listed.result["items"][1]["generation"]
    back = route.sandbox.dpone("ops", "rollback", target, "--to", kept, "--format", "json", seconds=120)
    assert back.code == 0, back
    assert route.live() == [FIRST] * len(route.cluster.replicas)

    found = route.found("r2")
    assert found is not None
    reopened = decide(route, "reopen", str(found.stream))
    assert reopened.code == 0, reopened
    assert route.run("r2").code == 0
    route.check_settled("r2", SECOND)

    swept = route.sandbox.dpone("ops", "sweep", target, "--yes", "--format", "json", seconds=120)
    assert swept.code == 0, swept
    assert {item["action"] for item in swept.result["items"]} == {"left"}
    assert route.findings() == []
