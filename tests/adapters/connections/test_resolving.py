"""From a reference to a connection: order, strictness, files, conflicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dpone.adapters.connections import Connection, resolve
from dpone.domain.errors import DponeError, ErrorCode

STEM = "DPONE_CONN_REPLAY_SOURCE_"


def parts(connection: Connection) -> tuple[object, ...]:
    return (
        connection.host,
        connection.port,
        connection.database,
        connection.username,
        connection.password,
        connection.secure,
        dict(connection.params),
        connection.kind,
    )


def test_parts_from_the_environment(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("p w\n")
    secret.chmod(0o600)
    environ = {
        STEM + "HOST": "db.example",
        STEM + "PORT": "9440",
        STEM + "DATABASE": "source",
        STEM + "USERNAME": "reader",
        STEM + "PASSWORD_FILE": str(secret),
        STEM + "SECURE": "true",
        STEM + "PARAMS": '{"connect_timeout": 5}',
    }
    expected = ("db.example", 9440, "source", "reader", "p w", True, {"connect_timeout": 5}, None)
    assert parts(resolve("replay_source", environ)) == expected


def test_a_url_and_parts_that_complete_it() -> None:
    environ = {
        STEM + "URL": "clickhouses://u%40x:p%3A%2F@db.example:9440/s?connect_timeout=5",
        STEM + "PARAMS": "{}",
    }
    with pytest.raises(DponeError, match="both give the params"):
        resolve("replay_source", environ)
    del environ[STEM + "PARAMS"]
    expected = ("db.example", 9440, "s", "u@x", "p:/", True, {"connect_timeout": "5"}, "clickhouse")
    assert parts(resolve("replay_source", environ)) == expected
    completed = resolve("replay_source", {STEM + "URL": "postgresql://u@[::1]/s", STEM + "PASSWORD": "x"})
    assert parts(completed) == ("::1", None, "s", "u", "x", None, {}, "postgres")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "9000 "),
        ("PORT", "1e3"),
        ("PORT", ""),
        ("SECURE", "maybe"),
        ("SECURE", ""),
        ("HOST", "db:9000"),
        ("HOST", "db/x"),
        ("HOST", "a b"),
        ("DATABASE", ""),
        ("USERNAME", " "),
        ("CA_FILE", "/nowhere/ca.pem"),
        ("PASSWORD_FILE", "/nowhere/password"),
        ("PARAMS", "[1]"),
        ("PARAMS", "{"),
        ("PARAMS", '{"a": 1, "a": 2}'),
        ("PARAMS", '{"a": {"b": 1}}'),
        ("PASWORD", "x"),
        ("URL", "postgres://other/x"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, value: str) -> None:
    environ = {STEM + "HOST": "db.example", STEM + name: value}
    with pytest.raises(DponeError) as failed:
        resolve("replay_source", environ)
    assert failed.value.code is ErrorCode.REQUEST_INVALID
    assert failed.value.exit_code == 2
    assert STEM + name in failed.value.what


@pytest.mark.parametrize(
    "url",
    [
        "mysql://db/x",
        "db.example",
        "postgres://db:99999/x",
        "postgres://db:x/x",
        "postgres://db/x/y",
        "postgres://db/x#y",
        "postgres://db/x?a",
        "postgres://db/x?a=1&a=2",
        "clickhouses://db/x?secure=false",
        "postgres://[db/x",
    ],
)
def test_urls_that_cannot_be_meant(url: str) -> None:
    with pytest.raises(DponeError) as failed:
        resolve("replay_source", {STEM + "URL": url})
    assert failed.value.code is ErrorCode.REQUEST_INVALID
    assert url not in failed.value.what


def test_a_value_and_its_file_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("x")
    environ = {STEM + "HOST": "h", STEM + "PASSWORD": "x", STEM + "PASSWORD_FILE": str(tmp_path / "p")}
    with pytest.raises(DponeError, match="both set"):
        resolve("replay_source", environ)


def test_a_host_is_needed() -> None:
    with pytest.raises(DponeError, match=STEM + "HOST") as failed:
        resolve("replay_source", {STEM + "PORT": "9000"})
    assert failed.value.code is ErrorCode.CONNECTION_NOT_FOUND


def test_not_found_says_where_it_was_looked_for() -> None:
    with pytest.raises(DponeError, match=f"'replay_source'.*{STEM}HOST.*AIRFLOW_CONN_REPLAY_SOURCE") as failed:
        resolve("replay_source", {"DPONE_CONN_REPLAY_HOST": "h"})
    assert failed.value.code is ErrorCode.CONNECTION_NOT_FOUND
    assert failed.value.exit_code == 2


@pytest.mark.parametrize(
    "value",
    [
        "clickhouse://u:p%20w@db.example:9000/s?secure=true&connect_timeout=5",
        json.dumps(
            {
                "conn_type": "clickhouse",
                "host": "db.example",
                "login": "u",
                "password": "p w",
                "port": 9000,
                "schema": "s",
                "extra": {"secure": True, "connect_timeout": "5"},
            }
        ),
    ],
)
def test_airflow_variables(value: str) -> None:
    found = resolve("replay_source", {"AIRFLOW_CONN_REPLAY_SOURCE": value})
    assert parts(found) == ("db.example", 9000, "s", "u", "p w", True, {"connect_timeout": "5"}, "clickhouse")


def private(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    path.chmod(0o600)
    return {"DPONE_CONNECTIONS": str(path)}


def test_a_toml_file(tmp_path: Path) -> None:
    environ = private(
        tmp_path / "c.toml", '[replay_source]\nhost = "h"\nport = 5\nsecure = false\nparams = { sslmode = "x" }\n'
    )
    assert parts(resolve("replay_source", environ)) == ("h", 5, None, None, None, False, {"sslmode": "x"}, None)
    with pytest.raises(DponeError, match=r"\[other\] in the file of DPONE_CONNECTIONS"):
        resolve("other", environ)


@pytest.mark.parametrize(
    "text",
    [
        '[replay_source]\nhost = "h"\nsecure = 1\n',
        '[replay_source]\nhost = "h"\nport = true\n',
        '[replay_source]\nhost = "h"\npasword = "x"\n',
        'replay_source = "h"\n',
        "[replay_source\n",
        '[replay_source]\nhost = "h"\nhost = "h"\n',
    ],
)
def test_a_toml_file_that_is_not_in_order(tmp_path: Path, text: str) -> None:
    with pytest.raises(DponeError) as failed:
        resolve("replay_source", private(tmp_path / "c.toml", text))
    assert failed.value.code is ErrorCode.REQUEST_INVALID


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_toml_file_that_others_can_read_or_write(tmp_path: Path, mode: int) -> None:
    environ = private(tmp_path / "c.toml", '[replay_source]\nhost = "h"\n')
    assert resolve("replay_source", environ).host == "h"
    (tmp_path / "c.toml").chmod(mode)
    with pytest.raises(DponeError, match="others can read"):
        resolve("replay_source", environ)


class Program:
    """A provider as a program would pass it in."""

    def connection(self, reference: str) -> Connection | None:
        return Connection(reference, "program") if reference == "replay_source" else None


def test_the_first_provider_that_knows_it_wins(tmp_path: Path) -> None:
    environ = private(tmp_path / "c.toml", '[replay_source]\nhost = "toml"\n')
    environ |= {"AIRFLOW_CONN_REPLAY_SOURCE": "x://airflow", STEM + "HOST": "environment"}
    found = []
    for used in (STEM + "HOST", "AIRFLOW_CONN_REPLAY_SOURCE", "DPONE_CONNECTIONS"):
        found.append(resolve("replay_source", environ, Program()).host)
        del environ[used]
    found.append(resolve("replay_source", environ, Program()).host)
    assert found == ["environment", "airflow", "toml", "program"]


class NotFound(Exception):
    """Stands for Airflow's own; Airflow is not installed where these tests run."""


def airflow(monkeypatch: pytest.MonkeyPatch, get_connection: Any) -> None:
    sdk, exceptions = ModuleType("airflow.sdk"), ModuleType("airflow.sdk.exceptions")
    sdk.BaseHook = SimpleNamespace(get_connection=get_connection)  # type: ignore[attr-defined]
    exceptions.AirflowNotFoundException = NotFound  # type: ignore[attr-defined]
    for name, module in (("airflow", ModuleType("airflow")), (sdk.__name__, sdk), (exceptions.__name__, exceptions)):
        monkeypatch.setitem(sys.modules, name, module)


def test_a_connection_object_only_inside_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def get_connection(reference: str) -> Any:
        asked.append(reference)
        if reference == "gone":
            raise NotFound
        if reference == "broken":
            raise RuntimeError("a backend quotes c4n4ry")
        return SimpleNamespace(
            conn_type="postgres",
            host="h",
            port=5432,
            schema="s",
            login="u",
            password="p",
            extra='{"sslmode": "require"}',
        )

    airflow(monkeypatch, get_connection)
    with pytest.raises(DponeError):
        resolve("replay_source", {})
    assert asked == []
    task = {"AIRFLOW_CTX_DAG_ID": "d"}
    found = resolve("replay_source", task)
    assert parts(found) == ("h", 5432, "s", "u", "p", None, {"sslmode": "require"}, "postgres")
    with pytest.raises(DponeError) as failed:
        resolve("gone", task)
    assert failed.value.code is ErrorCode.CONNECTION_NOT_FOUND
    with pytest.raises(DponeError) as failed:
        resolve("broken", task)
    assert "c4n4ry" not in str(failed.value)
