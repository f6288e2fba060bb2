"""A password that changes while an operation is under way, on a real server and in the environment.

It is no part of what an operation is: the same command goes on with the new one, or needs none any more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed

from dpone.adapters.connections import Connection
from dpone.adapters.connections import clickhouse as clickhouse_connections
from dpone.domain.errors import DponeError
from tests.cli.sandbox import Sandbox, ended
from tests.servers.clickhouse import PASSWORD as CLICKHOUSE_PASSWORD
from tests.servers.clickhouse import ClickHouseServer, clickhouse_server
from tests.servers.postgres import PostgresServer
from tests.servers.required import require

NEW = "n3w-after-rotation"
RELOAD_SECONDS = 15.0
POINTS = {
    "while the rows are read": "fill#1:middle",
    "after the capsule": "append CapsuleWritten#1:after",
    "after the swap": "swap#1:after",
}


@dataclass(frozen=True, slots=True)
class Rotating:
    """A server, its manifest's source, and how its password changes."""

    kind: str
    schema: str
    port: int
    user: str
    old: str
    rotate: Callable[[str], None]

    def environment(self, password: str) -> dict[str, str]:
        parts = {"HOST": "127.0.0.1", "PORT": str(self.port), "USERNAME": self.user, "PASSWORD": password}
        return {f"DPONE_CONN_ROTATING_{name}": value for name, value in parts.items()}


@pytest.fixture(params=["clickhouse", "postgres"])
def rotating(request: pytest.FixtureRequest) -> Rotating:
    """A server whose user has the old password again."""
    found: Rotating = request.getfixturevalue(f"{request.param}_rotating")
    found.rotate(found.old)
    return found


@pytest.fixture(scope="module")
def clickhouse_rotating() -> Iterator[Rotating]:
    require(clickhouse_is_installed(), "clickhouse-server")
    with clickhouse_server() as server:
        server.execute("CREATE TABLE rotated_rows (id UInt32) ENGINE = MergeTree ORDER BY id")
        server.execute("INSERT INTO rotated_rows VALUES", [(number,) for number in range(300)])

        def rotate(password: str) -> None:
            server.set_password(password)
            _wait_until(lambda: _is_let_in(server, password))

        yield Rotating("clickhouse", "default", server.port, "reader", CLICKHOUSE_PASSWORD, rotate)


@pytest.fixture(scope="module")
def postgres_rotating(postgres: PostgresServer) -> Iterator[Rotating]:
    postgres.execute("CREATE TABLE rotated_rows AS SELECT generate_series(1, 300) AS id")
    postgres.execute("CREATE ROLE rotating LOGIN PASSWORD 'old'; GRANT SELECT ON rotated_rows TO rotating")
    yield Rotating(
        "postgres",
        "public",
        postgres.port,
        "rotating",
        "old",
        lambda password: _nothing(postgres.execute(f"ALTER ROLE rotating PASSWORD '{password}'")),
    )
    postgres.execute("DROP TABLE rotated_rows; DROP ROLE rotating")


def _nothing(_: object) -> None:
    """A statement without a result."""


def _is_let_in(server: ClickHouseServer, password: str) -> bool:
    try:
        with clickhouse_connections.opened(Connection("x", "127.0.0.1", server.port, None, "reader", password)):
            return True
    except DponeError:
        return False


def _wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + RELOAD_SECONDS
    while not holds():
        assert time.monotonic() < end, "the server did not take the new password"
        time.sleep(0.1)


def command(sandbox: Sandbox, server: Rotating) -> list[str]:
    source = {
        "type": server.kind,
        "connection_ref": "rotating",
        "table": {"schema": server.schema, "name": "rotated_rows"},
    }
    sink = {
        "type": "clickhouse",
        "connection_ref": "embedded",
        "table": {"schema": "db", "name": "rows"},
        "columns": {"id": "UInt32"},
        "strategy": {"mode": "full_refresh"},
        "options": {"durable_quality_replay": True},
    }
    acceptance = {"enabled": True, "mode": "required", "checks": {"row_count": True, "distinct_counts": ["id"]}}
    process = {"name": "rows", "source": source, "sink": sink, "quality": {"acceptance": acceptance}}
    flow = {"kind": "dpone.flow.v1", "metadata": {"id": "rotating"}, "processes": [process]}
    sandbox.manifest.write_text(json.dumps(flow))
    return sandbox.words()


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_a_run_that_was_killed_goes_on_with_the_new_password(point: str, rotating: Rotating, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, rotating.environment(rotating.old))
    words = command(sandbox, rotating)
    killed = ended(sandbox.composed(tmp_path / "killed", f"kill@{point}", words))
    assert killed.code == -9, killed.err

    (started,) = sandbox.dpone("ops", "list", "--format", "json").result["items"]
    rotating.rotate(NEW)
    sandbox.environment = rotating.environment(NEW)
    done = sandbox.dpone(*words)

    assert done.code == 0, done.out + done.err
    assert done.details["operation_id"] == started["operation_id"]
    assert done.document["attempts"] == 2
    assert done.result["final_rows"] == 300


def test_a_run_with_the_old_password_is_refused_and_costs_nothing(rotating: Rotating, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, rotating.environment(rotating.old))
    words = command(sandbox, rotating)
    ended(sandbox.composed(tmp_path / "killed", f"kill@{POINTS['while the rows are read']}", words))
    rotating.rotate(NEW)
    refused = sandbox.dpone(*words)
    sandbox.environment = rotating.environment(NEW)
    done = sandbox.dpone(*words)

    assert refused.code == 1
    assert "DPONE_CONNECTION_REFUSED" in refused.out
    assert done.code == 0, done.out + done.err
    assert done.details["operation_id"] == refused.details["operation_id"]


def test_after_the_capsule_no_password_is_needed(rotating: Rotating, tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, rotating.environment(rotating.old))
    words = command(sandbox, rotating)
    ended(sandbox.composed(tmp_path / "killed", f"kill@{POINTS['after the capsule']}", words))
    sandbox.environment = {}
    done = sandbox.dpone(*words)

    assert done.code == 0, done.out + done.err
    assert done.document["attempts"] == 2
