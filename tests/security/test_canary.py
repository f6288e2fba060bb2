"""A password, and a value of a row, are put into real loads; then everything that came out is searched for them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.sandbox import Ended, Sandbox, ended
from tests.servers.clickhouse import ClickHouseServer
from tests.servers.postgres import PostgresServer
from tests.servers.processes import free_port

from .loads import PASSWORDS, PROVIDERS, flow, logins, provided
from .searching import files_with, watched

VALUE = "c4n4ry-of-a-row"
WRONG = "wr0ng-c4n4ry"

Servers = tuple[ClickHouseServer, PostgresServer]


@pytest.fixture(scope="module")
def servers(
    clickhouse: ClickHouseServer, postgres: PostgresServer
) -> Iterator[tuple[ClickHouseServer, PostgresServer]]:
    """Both servers with three rows each; one value of each table is a canary."""
    clickhouse.execute("CREATE TABLE canary_rows (id UInt32, name String) ENGINE = MergeTree ORDER BY id")
    clickhouse.execute("INSERT INTO canary_rows VALUES", [(1, "a"), (2, "b"), (3, VALUE)])
    postgres.execute("CREATE TABLE canary_rows (id int NOT NULL, name text NOT NULL)")
    postgres.execute(f"INSERT INTO canary_rows VALUES (1, 'a'), (2, 'b'), (3, '{VALUE}')")
    yield clickhouse, postgres
    clickhouse.execute("DROP TABLE canary_rows")
    postgres.execute("DROP TABLE canary_rows")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Secrets lie outside of it: whatever is found inside was written by the product."""
    (tmp_path / "box").mkdir()
    return Sandbox(tmp_path / "box")


def run_all(sandbox: Sandbox, *more: str) -> list[str]:
    return ["run", str(flow(sandbox.folder)), "--all", "--dag-id", "d", "--run-id", "r", *more]


def silent_on(done: Ended, *canaries: str) -> None:
    assert [word for word in canaries if word in done.out + done.err] == []


def stored(sandbox: Sandbox) -> bytes:
    """Every row of every table of the ledger, as text and bytes."""
    with sqlite3.connect(f"file:{sandbox.ledger}?mode=ro", uri=True) as ledger:
        tables = [name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for table in tables for row in ledger.execute(f'SELECT * FROM "{table}"')]
    assert "stored_events" in tables
    return b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_password_is_nowhere(provider: str, servers: Servers, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.environment = provided(provider, logins(*servers), tmp_path)
    process = sandbox.start(run_all(sandbox, "--format", "json"))
    with watched(process) as seen:
        done = ended(process)
    repeated = sandbox.dpone(*run_all(sandbox))
    planned = sandbox.dpone("plan", str(flow(sandbox.folder)), "--connect")

    assert (done.code, repeated.code, planned.code) == (0, 0, 0), done.out + done.err + repeated.err + planned.err
    for said in (done, repeated, planned):
        silent_on(said, *PASSWORDS, VALUE)
    assert seen.workers > 0
    for password in PASSWORDS:
        assert not [line for line in seen.arguments if password.encode() in line]
        assert not [text for text in seen.environments if password.encode() in text]
        assert password.encode() not in stored(sandbox)
        assert files_with(sandbox.folder, password) == []


@pytest.mark.parametrize(
    ("provider", "fault"), [(each, ("wrong password", "refused port")[n % 2]) for n, each in enumerate(PROVIDERS)]
)
def test_a_connection_that_fails_tells_no_secret_and_no_place(
    provider: str,
    fault: str,
    servers: Servers,
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    port = free_port()
    given = tuple(
        (reference, kind, right, database, WRONG)
        if fault == "wrong password"
        else (reference, kind, port, database, word)
        for reference, kind, right, database, word in logins(*servers)
    )
    sandbox.environment = provided(provider, given, tmp_path)
    done = sandbox.dpone(*run_all(sandbox, "--format", "json" if provider in ("part", "toml") else "text"))

    assert done.code == 1
    assert "DPONE_CONNECTION_REFUSED" in done.out + done.err
    silent_on(done, WRONG, *PASSWORDS, "127.0.0.1", *(f":{port}" for _, _, port, _, _ in given))
    for word in (WRONG, *PASSWORDS):
        assert files_with(sandbox.folder, word) == []


def test_a_refused_value_is_in_the_engines_folder_at_most(servers: Servers, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.environment = provided("part", logins(*servers), tmp_path)
    manifest = flow(sandbox.folder)
    manifest.write_text(manifest.read_text().replace('"name": "String"', '"name": "UInt8"'))
    command = ["run", str(manifest), "--all", "--dag-id", "d", "--run-id", "r"]
    outcomes = [sandbox.dpone(*command), sandbox.dpone(*command, "--format", "json")]

    for done in outcomes:
        assert done.code == 1
        assert "DPONE_SOURCE_VALUE_REFUSED" in done.out + done.err
        silent_on(done, VALUE)
    assert VALUE.encode() not in stored(sandbox)
    assert files_with(sandbox.folder, VALUE, but=sandbox.engine) == []


def test_a_value_that_fails_a_gate_or_is_loaded_is_in_the_engines_folder_only(
    servers: Servers, sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.environment = provided("part", logins(*servers), tmp_path)
    manifest = flow(sandbox.folder)
    demanding = json.loads(manifest.read_text())
    demanding["processes"][1]["quality"]["gates"].append({"id": "more", "type": "min_rows", "rows": 100})
    manifest.write_text(json.dumps(demanding))
    done = sandbox.dpone("run", str(manifest), "--all", "--dag-id", "d", "--run-id", "r", "--format", "json")

    assert done.code == 1
    assert "EVIDENCE_FAILED" in done.out
    silent_on(done, VALUE)
    assert files_with(sandbox.folder, VALUE, but=sandbox.engine) == []


@pytest.mark.parametrize(
    "line",
    [
        '  password: "{0}"',
        "  url: clickhouse://reader:{0}@db.example:9000/source",
        "  # reader with password={0}",
        "  options: {{api_key: {0}}}",
    ],
)
def test_a_manifest_that_holds_a_credential_is_refused_and_not_quoted(line: str, sandbox: Sandbox) -> None:
    sandbox.manifest.write_text(f"kind: dpone.flow.v1\nmetadata:\n  id: x\n{line.format(WRONG)}\nprocesses: []\n")
    for command in ("run", "validate", "plan"):
        done = sandbox.dpone(command, str(sandbox.manifest))
        assert done.code == 2
        assert "credential" in done.err
        silent_on(done, WRONG)
    assert files_with(sandbox.home, WRONG) == []
