"""The doctor tries what a run needs, connections included, and says what to do about each thing that does not work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.postgres import PASSWORD, PostgresServer
from tests.servers.sessions import postgres

from .sandbox import Sandbox

__all__ = ["postgres"]

MANIFEST = """
kind: dpone.flow.v1
metadata: {id: doctors}
processes:
  - name: load
    source: {type: postgres, connection_ref: shop, query: SELECT 1 AS id}
    sink: {type: clickhouse, connection_ref: embedded, table: {schema: db, name: t}}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "doctors.flow.yaml"
    path.write_text(MANIFEST)
    return path


def bound(server: PostgresServer, **changed: str) -> dict[str, str]:
    parts = {"HOST": "127.0.0.1", "PORT": str(server.port), "USERNAME": "reader", "PASSWORD": PASSWORD, **changed}
    return {f"DPONE_CONN_SHOP_{part}": value for part, value in parts.items()}


def test_a_connection_that_works(sandbox: Sandbox, manifest: Path, postgres: PostgresServer) -> None:
    sandbox.environment.update(bound(postgres))
    ended = sandbox.dpone("doctor", str(manifest), "--format", "json")
    assert ended.code == 0, ended.err
    items = {item["check"]: item for item in ended.result["items"]}
    assert items["connection"]["status"] == "ok"
    assert {"version", "home", "ledger", "engine", "reader"} <= items.keys()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"PASSWORD": "wrong-canary"}, "password"),
        ({"PORT": "1"}, "cannot be reached"),
        ({"DATABASE": "nowhere"}, "database"),
    ],
)
def test_a_connection_that_does_not(
    sandbox: Sandbox, manifest: Path, postgres: PostgresServer, changed: dict[str, str], said: str
) -> None:
    sandbox.environment.update(bound(postgres, **changed))
    ended = sandbox.dpone("doctor", str(manifest), "--format", "json")
    assert ended.code == 2
    (found,) = (item for item in ended.result["items"] if item["check"] == "connection")
    assert found["status"] == "problem"
    assert said in found["text"]
    assert found["fix"]
    assert "wrong-canary" not in ended.out + ended.err
    assert str(postgres.port) not in ended.out + ended.err


def test_a_connection_that_nobody_knows(sandbox: Sandbox, manifest: Path) -> None:
    ended = sandbox.dpone("doctor", str(manifest))
    assert ended.code == 2
    assert "'shop' is not known" in ended.out
    assert "DPONE_CONN_SHOP_HOST" in ended.out
