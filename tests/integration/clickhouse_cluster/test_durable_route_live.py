"""The whole route on real servers: load, replay, kill, heal, repeat. Every promise is read off the servers."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from dpone.domain.operation import State

from .route import TABLE, Route, lines_of, points_of

FIRST, SECOND = 1, 2


def opened(lines: Sequence[str]) -> int:
    """How often the source was read."""
    return sum(point.startswith("read#") and point.endswith(":before") for point in points_of(lines))


def test_two_loads_and_their_replays(route: Route, tmp_path: Path) -> None:
    first = route.run("r1")
    assert first.code == 0, first
    evidence = first.result["details"]["reconciliation_metrics"]["quality_replay"]
    counted = {
        "row_count": route.rows[FIRST],
        "null_counts": {"amount": (route.rows[FIRST] + 6) // 7},
        "distinct_counts": {"record_id": route.rows[FIRST]},
    }
    for where in ("source", "staged", "target"):
        found = {name: evidence["acceptance"][where][name] for name in counted}
        assert found == counted, where
    assert all(gate["passed"] for gate in evidence["gates"])
    route.check_settled("r1", FIRST)

    again = route.run("r1")
    assert (again.code, again.result["extracted_rows"], again.document["attempts"]) == (0, 0, 2)
    assert again.result["details"]["reconciliation_metrics"]["quality_replay"]["replayed"] is True

    route.write_source(SECOND)
    second = route.acted(tmp_path / "second", "none", "r2")
    assert second.code == 0, second
    assert sum(point.startswith("swap#") for point in points_of(lines_of(tmp_path / "second"))) == 2
    route.check_settled("r2", SECOND)
    replaced = route.run("r1")
    assert (replaced.code, replaced.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_MISMATCH")


def marks(route: Route) -> int:
    """How many index marks (8,192 rows each) the servers have selected so far, in any table."""
    statement = "SELECT value FROM system.events WHERE event = 'SelectedMarks'"
    return sum(int(replica.execute(statement)[0][0]) for replica in route.cluster.replicas)


def test_a_replay_scans_nothing(route: Route) -> None:
    route.write_source(FIRST, 400_000)
    assert route.run("r1").code == 0
    before = marks(route)
    assert route.run("r1").code == 0
    assert marks(route) - before <= 8, "more than the platform's own marker was read; one scan is 49 marks"


def test_a_gate_that_fails_publishes_nothing(route: Route) -> None:
    assert route.run("r1").code == 0
    manifest = route.sandbox.manifest.read_text()
    route.sandbox.manifest.write_text(
        manifest.replace('"id": "hash"', '"id": "many", "rows": 1000000').replace(
            "typed_hash_reconciliation", "min_rows"
        )
    )
    route.write_source(SECOND)
    failed = route.run("r2")
    assert (failed.code, failed.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_FAILED")
    assert route.live() == [FIRST] * len(route.cluster.replicas)
    assert "analytics" not in failed.err
    route.sandbox.manifest.write_text(manifest)
    corrected = route.run("r2")
    assert corrected.code == 0, corrected
    route.check_settled("r2", SECOND)


def test_a_table_of_somebody_else_is_published_over_once_it_was_adopted_and_never_dropped(route: Route) -> None:
    route.cluster.execute(
        f"CREATE TABLE {route.database}.{TABLE} ON CLUSTER {route.cluster.name} "
        "(record_id UInt64, generation UInt8, amount Nullable(Float64)) "
        f"ENGINE = ReplicatedMergeTree('/somebody/{route.database}', '{{replica}}') ORDER BY record_id"
    )
    route.write_manifest(strategy={"mode": "full_refresh", "keep_generations": 0})
    refused = route.run("r1")
    assert (refused.code, refused.result["error_code"]) == (2, "DPONE_PUBLICATION_NOT_ADMITTED")
    typed = refused.details["next"].replace("NAME", "Ada").replace("TEXT", "ours").split()
    assert typed[:3] == ["dpone", "platform", "adopt"]
    adopted = route.sandbox.dpone(*typed[1:])
    assert adopted.code == 0, adopted
    for number, run_id in enumerate(("r1", "r2", "r3"), start=1):
        route.write_source(number)
        done = route.run(run_id)
        assert done.code == 0, done
        route.check_settled(run_id, number)
    paths = f"SELECT zookeeper_path FROM system.replicas WHERE database = '{route.database}'"
    for replica in route.cluster.replicas:
        assert (f"/somebody/{route.database}",) in replica.execute(paths)
        assert len(replica.execute(paths)) == 2, "what this ledger published before was dropped"


POINTS = {
    "first": (
        "append OperationAdmitted+AttemptStarted+SlotOpened+SlotClaimed#1:after",
        "create#1:before",
        "create#1:after",
        "fill#1:middle",
        "fill#1:after",
        "append SourceObserved+CandidateStaged#1:after",
        "observe-candidate#1:after",
        "append CapsuleWritten#1:after",
        "append PublicationDispatched#1:after",
        "swap#1:after",
        "append CommitProven+GenerationPublished#1:after",
    ),
    "second": (
        "append PublicationDispatched#1:before",
        "append PublicationDispatched#1:after",
        "swap#1:after",
        "append CommitProven+GenerationPublished#1:before",
        "append CommitProven+GenerationPublished#1:after",
        "append TargetPending+ReaderGuardAcquired#1:after",
        "observe-target#1:after",
        "append TargetObserved#1:after",
        "append ReceiptAccepted#1:after",
        "append ReaderGuardReleased#1:after",
        "append OperationCompleted+SlotVacated#1:before",
        "append OperationCompleted+SlotVacated#1:after",
    ),
}
KILLS = [pytest.param(name, point, id=f"{name}-{point}") for name, points in POINTS.items() for point in points]


@pytest.mark.parametrize(("name", "point"), KILLS)
def test_killed_here_the_same_command_finishes(name: str, point: str, route: Route, tmp_path: Path) -> None:
    run_id, generation = "r1", FIRST
    if name == "second":
        assert route.run("r1").code == 0
        route.write_source(SECOND)
        run_id, generation = "r2", SECOND
    killed = route.acted(tmp_path / "killed", f"kill@{point}", run_id)
    if point not in points_of(lines_of(tmp_path / "killed")):
        pytest.fail(f"the run never came to this point: {points_of(lines_of(tmp_path / 'killed'))}")
    assert killed.code == -signal.SIGKILL
    found = route.found(run_id)
    staged = found is not None and found.operation.generation is not None and found.operation.generation.is_staged
    done = found is not None and found.operation.state is State.COMPLETE
    finished = route.acted(tmp_path / "finished", "none", run_id)
    assert finished.code == 0, finished
    assert opened(lines_of(tmp_path / "finished")) == (0 if staged or done else 1)
    route.check_settled(run_id, generation)
    _check_one_swap(route, tmp_path)


def _check_one_swap(route: Route, folder: Path) -> None:
    """On the first replica the target's name changed hands once, and never back."""
    seen = [line for name in ("killed", "finished") for line in lines_of(folder / name) if line.startswith("live ")]
    held = list(dict.fromkeys(seen))
    joined = [line for index, line in enumerate(seen) if index == 0 or seen[index - 1] != line]
    assert joined == held, f"a table came back: {seen}"
    assert len(held) <= 2


FAULTS = [
    pytest.param(how, number, point, id=f"{how} replica {number} at {point}")
    for how, number in (("freeze", 2), ("end", 1))
    for point in (
        "create#1:before",
        "fill#1:middle",
        "fill#1:after",
        "append PublicationDispatched#1:before",
        "append PublicationDispatched#1:after",
        "swap#1:after",
        "append TargetPending+ReaderGuardAcquired#1:after",
        "observe-target#1:after",
    )
]


@pytest.mark.parametrize(("how", "number", "point"), FAULTS)
def test_a_replica_stops_here_and_the_same_command_finishes_once_it_is_back(
    how: str, number: int, point: str, breakable_route: Route, tmp_path: Path
) -> None:
    route = breakable_route
    assert route.run("r1").code == 0
    route.write_source(SECOND)
    server = route.cluster.replicas[number - 1].process
    assert server is not None
    stopped = route.acted(tmp_path / "killed", f"{how}:{server.pid}@{point}", "r2")
    assert point in points_of(lines_of(tmp_path / "killed")), stopped
    if stopped.code != 0 and stopped.result["error_code"] == "DPONE_SOURCE_UNREADABLE":
        assert (number, point) == (1, "fill#1:middle"), "the first replica is the source as well"
    elif stopped.code != 0:
        assert stopped.result["error_code"] == "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE", stopped
        assert stopped.details["cause"] in (
            "DPONE_PUBLICATION_REPLICA_UNREACHABLE",
            "DPONE_PUBLICATION_UNKNOWN",
            "DPONE_REPLAY_QUALITY_EVIDENCE_REQUIRED",
        )
        assert "r2" in stopped.details["next"]
    route.cluster.start()
    finished = route.run("r2")
    assert finished.code == 0, finished
    route.check_settled("r2", SECOND)


def test_a_replica_that_lost_everything_gets_the_new_generation_again(breakable_route: Route, tmp_path: Path) -> None:
    route = breakable_route
    assert route.run("r1").code == 0
    route.write_source(SECOND)
    killed = route.acted(tmp_path / "killed", "kill@append PublicationDispatched#1:after", "r2")
    assert killed.code == -signal.SIGKILL
    lost = route.cluster.replicas[1]
    lost.kill()
    lost.start(empty=True)
    unmarked = route.run("r2")
    assert unmarked.code == 2, unmarked
    assert "replica_2" in unmarked.err
    route.admit()
    finished = route.run("r2")
    assert finished.code == 0, finished
    route.check_settled("r2", SECOND)
    assert TABLE in route.names()[1]


FENCED = "append PublicationFenced+PublicationDispatched#1"
RECOVERIES = [
    pytest.param(lost, point, id=f"{'rebuild' if lost else 'fence'}-{point}")
    for lost, points in (
        (False, ("rename#1:before", "rename#1:after", "rename#2:after", f"{FENCED}:before", f"{FENCED}:after")),
        (False, ("swap#1:before", "swap#1:after")),
        (True, ("rebuild#1:before", "rebuild#1:after", "rename#1:after", f"{FENCED}:after")),
    )
    for point in points
]


@pytest.mark.parametrize(("lost", "point"), RECOVERIES)
def test_killed_while_it_recovers_the_same_command_finishes(
    lost: bool, point: str, breakable_route: Route, tmp_path: Path
) -> None:
    """The first process dies after its intent and before its statement; the second one is killed at this point."""
    route = breakable_route
    assert route.run("r1").code == 0
    route.write_source(SECOND)
    first = route.acted(tmp_path / "first", "kill@append PublicationDispatched#1:after", "r2")
    assert first.code == -signal.SIGKILL
    if lost:
        replica = route.cluster.replicas[1]
        replica.kill()
        replica.start(empty=True)
        route.admit()
    killed = route.acted(tmp_path / "killed", f"patient,kill@{point}", "r2")
    assert killed.code == -signal.SIGKILL, points_of(lines_of(tmp_path / "killed"))
    finished = route.acted(tmp_path / "finished", "patient,none", "r2")
    assert finished.code == 0, finished
    assert opened(lines_of(tmp_path / "killed")) == opened(lines_of(tmp_path / "finished")) == 0
    route.check_settled("r2", SECOND)
