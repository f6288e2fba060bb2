"""Many processes at once: with one identity, for one target, and against an operator. On every store that can be raced.

However they end, no event is lost, nothing is swapped twice, no guard and no slot is left without an owner.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from dpone.domain.errors import ErrorCode
from dpone.domain.operation import State
from tests.cli.sandbox import Ended, Sandbox, ended, engine_rows, rows_of
from tests.crash.evidence import ledger_findings, operation_of
from tests.integration.clickhouse_cluster.route import Route
from tests.ledger.test_postgres_store import fresh_url
from tests.servers.cluster import Cluster
from tests.servers.postgres import PostgresServer
from tests.servers.sessions import postgres

from .fleet import admit, admitted_fleet, asked

__all__ = ["postgres"]

SECONDS = 240.0
OVERTAKEN = {
    ErrorCode.SUPERSEDED.value,
    ErrorCode.TARGET_BLOCKED.value,
    ErrorCode.RETIRED.value,
    ErrorCode.ENGINE_BUSY.value,
    ErrorCode.LEDGER_CONFLICT.value,
    ErrorCode.EVIDENCE_INCOMPLETE.value,
    ErrorCode.EVIDENCE_MISMATCH.value,
}
"""How a process may end that was not the last: true, and nothing of it counts."""


def all_ended(processes: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """Each of them, told to be right or to say why not."""
    endings = [ended(process, SECONDS) for process in processes]
    for one in endings:
        assert one.code == 0 or one.result["error_code"] in OVERTAKEN, one
    return endings


@pytest.mark.parametrize("count", [2, 8])
def test_one_identity_many_times_on_the_embedded_engine(sandbox: Sandbox, count: int) -> None:
    endings = all_ended([sandbox.start(sandbox.words("r1")) for _ in range(count)])
    assert any(one.code == 0 for one in endings), [one.result["error_code"] for one in endings]
    done = sandbox.run("r1")
    assert done.code == 0, done
    found = operation_of(sandbox, "r1")
    assert found is not None
    assert [type(event).__name__ for event in found.events].count("CommitProven") == 1
    assert (found.operation.state, found.slot.holder, found.slot.guard) == (State.COMPLETE, None, None)
    assert engine_rows(sandbox.engine) == rows_of(1)
    assert ledger_findings(sandbox) == []


@pytest.fixture(params=["keeper", "postgresql"])
def raced(request: pytest.FixtureRequest, breakable_cluster: Cluster, tmp_path: Path) -> Iterator[Route]:
    """A target on the cluster whose ledger is of each kind; a source of generation 1 is ready.

    These servers have no KeeperMap: that store is raced by tests/ledger in the engine that has it.
    """
    url = ""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = fresh_url(server, create=False)
    with admitted_fleet(breakable_cluster, tmp_path, 1, 1, url) as fleet:
        route = fleet.routes[0]
        route.write_source(1, 500)
        yield route


def check_settled(route: Route, run_id: str, generation: int) -> None:
    """The last word: complete, one proof, the right rows, and the ledger holds."""
    done = route.run(run_id, SECONDS)
    assert done.code == 0, done
    route.check_settled(run_id, generation)
    found = route.found(run_id)
    assert found is not None
    assert [type(event).__name__ for event in found.events].count("CommitProven") == 1


@pytest.mark.parametrize("count", [2, 8])
def test_one_identity_many_times_on_the_cluster(raced: Route, count: int) -> None:
    sandbox = raced.sandbox
    endings = all_ended([sandbox.start(sandbox.words("r1")) for _ in range(count)])
    assert sum(one.code == 0 for one in endings) >= 1, endings
    check_settled(raced, "r1", 1)


def test_two_operations_for_one_target(raced: Route) -> None:
    """Two runs of one dag, and one of another: one after another, displaced before dispatch, or told who is there."""
    sandbox = raced.sandbox
    words = [sandbox.words("r1"), sandbox.words("r2"), sandbox.words("r1", "other")]
    endings = all_ended([sandbox.start(one) for one in words])
    assert any(one.code == 0 for one in endings), endings
    for one in (*words[:2], words[1]):
        last = ended(sandbox.start(one), SECONDS)
    assert last.code == 0 or last.result["error_code"] in OVERTAKEN, last
    ended(sandbox.start(sandbox.words("r3")), SECONDS)
    check_settled(raced, "r3", 1)


REVIEW = ["--reviewed-by", "a tester", "--reason", "a race", "--format", "json"]
REVOKE = ["revoke", *REVIEW[:4]]
AGAINST: dict[str, Callable[[Route, str], list[str]]] = {
    "release-guard": lambda route, operation: ["ops", "release-guard", operation, *REVIEW, "--yes", operation],
    "retire": lambda route, operation: ["ops", "retire", operation, *REVIEW, "--yes", operation],
}


@pytest.mark.parametrize("command", AGAINST)
def test_an_operator_beside_the_same_command(raced: Route, command: str) -> None:
    """The operator is refused while the command would finish by itself, or has decided: never both."""
    sandbox = raced.sandbox
    died = raced.acted(raced.sandbox.folder / "died", "kill@append TargetPending+ReaderGuardAcquired#1:after", "r1")
    assert died.code < 0
    found = raced.found("r1")
    assert found is not None
    process = sandbox.start(sandbox.words("r1"))
    decisions = [sandbox.start(AGAINST[command](raced, str(found.stream))) for _ in range(2)]
    said = [ended(one, SECONDS) for one in decisions]
    run = ended(process, SECONDS)
    assert run.code == 0 or run.result["error_code"] in OVERTAKEN, run
    for one in said:
        assert one.code == 0 or one.document["result"]["error_code"], one
    after = raced.found("r1")
    assert after is not None
    if after.operation.state is State.RETIRED:
        assert run.code != 0 or after.slot.holder is None
        assert after.slot.guard is None
        assert raced.findings() == []
        return
    check_settled(raced, "r1", 1)


@pytest.mark.parametrize("seconds", [0.0, 0.8, 1.6])
def test_the_owner_revokes_beside_a_run(raced: Route, seconds: float) -> None:
    """Told that a target is held, or heeded: then nothing begins until the replicas are admitted again. Never both."""
    check_settled(raced, "r1", 1)
    raced.write_source(2, 700)
    process = raced.sandbox.start(raced.sandbox.words("r2"))
    time.sleep(seconds)
    decided = asked(raced.cluster, raced, REVOKE)
    run = ended(process, SECONDS)
    assert run.code == 0 or run.result["error_code"] in {*OVERTAKEN, ErrorCode.NOT_ADMITTED.value}, run
    if decided.code != 0:
        assert decided.document["result"]["error_code"] == ErrorCode.TARGET_BLOCKED.value, decided
        assert run.code == 0, run
        assert asked(raced.cluster, raced, REVOKE).code == 0
    refused = raced.run("r3", SECONDS)
    assert (refused.code, refused.result["error_code"]) == (2, ErrorCode.NOT_ADMITTED.value), refused
    admit(raced.cluster, raced)
    check_settled(raced, "r2", 2)
