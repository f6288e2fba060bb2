"""A canary for a password: put into every provider, it is nowhere but in the connection's own field."""

from __future__ import annotations

import json
import logging
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpone.adapters.connections import Connection, resolve
from dpone.adapters.connections import clickhouse as clickhouse_connections
from dpone.adapters.connections import postgres as postgres_connections
from dpone.domain.errors import DponeError, ErrorCode

CANARY = "c4n4ry-p4ssw0rd"
HOST = "127.0.0.1"


def providers(folder: Path, host: str, port: int) -> Iterator[dict[str, str]]:
    stem = "DPONE_CONN_X_"
    yield {stem + "HOST": host, stem + "PORT": str(port), stem + "PASSWORD": CANARY}
    yield {stem + "URL": f"clickhouse://u:{CANARY}@{host}:{port}/d"}
    (folder / "secret").write_text(CANARY)
    (folder / "secret").chmod(0o600)
    yield {stem + "HOST": host, stem + "PORT": str(port), stem + "PASSWORD_FILE": str(folder / "secret")}
    yield {"AIRFLOW_CONN_X": f"http://u:{CANARY}@{host}:{port}/d"}
    yield {"AIRFLOW_CONN_X": json.dumps({"host": host, "port": port, "password": CANARY})}
    (folder / "c.toml").write_text(f'[x]\nhost = "{host}"\nport = {port}\npassword = "{CANARY}"\n')
    (folder / "c.toml").chmod(0o600)
    yield {"DPONE_CONNECTIONS": str(folder / "c.toml")}


def told(error: DponeError) -> str:
    parts = [str(error), repr(error), error.what, error.safe, error.next, *error.errors, error.known]
    return " ".join(map(str, parts)) + "".join(traceback.format_exception_only(error))


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that nobody listens on, held so that nobody will."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        yield int(held.getsockname()[1])


def test_a_password_is_in_its_field_and_nowhere_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with silent_port() as port:
        for environ in providers(tmp_path, HOST, port):
            connection = resolve("x", environ)
            assert connection.password == CANARY
            assert CANARY not in f"{connection!r} {connection}"
            opens: list[Any] = [clickhouse_connections.opened]
            if connection.kind is None:
                opens += [postgres_connections.opened, postgres_connections.copying]
            for opened in opens:
                with pytest.raises(DponeError) as failed, opened(connection):
                    pass
                assert failed.value.code is ErrorCode.CONNECTION_REFUSED
                said = told(failed.value)
                assert CANARY not in said
                assert str(port) not in said
                assert HOST not in said
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    "environ",
    [
        {"DPONE_CONN_X_URL": f"clickhouse://u:{CANARY}@h:1:2/d"},
        {"DPONE_CONN_X_URL": f"nonsense {CANARY}"},
        {"DPONE_CONN_X_HOST": f"u:{CANARY}@h"},
        {"DPONE_CONN_X_HOST": "h", "DPONE_CONN_X_PORT": CANARY},
        {"DPONE_CONN_X_HOST": "h", "DPONE_CONN_X_PARAMS": f'{{"password": "{CANARY}"'},
        {"DPONE_CONN_X_HOST": "h", "DPONE_CONN_X_PASSWORD_FILE": f"/nowhere/{CANARY}"},
        {"AIRFLOW_CONN_X": f'{{"host": "h", "password": "{CANARY}"'},
        {"AIRFLOW_CONN_X": f'{{"host": "h", "pasword": "{CANARY}"}}'},
        {"AIRFLOW_CONN_X": CANARY},
    ],
)
def test_refusals_quote_no_value(environ: dict[str, str]) -> None:
    with pytest.raises(DponeError) as failed:
        resolve("x", environ)
    assert CANARY not in told(failed.value)


def test_a_broken_toml_file_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'[x]\npassword = "{CANARY}\n')
    (tmp_path / "c.toml").chmod(0o600)
    with pytest.raises(DponeError) as failed:
        resolve("x", {"DPONE_CONNECTIONS": str(tmp_path / "c.toml")})
    assert CANARY not in told(failed.value)


@pytest.mark.parametrize("options", [clickhouse_connections.driver_options, postgres_connections.driver_options])
def test_params_are_known_or_refused(options: object) -> None:
    assert callable(options)
    assert options(Connection("x", "h", params={"connect_timeout": "5"}))["connect_timeout"] == 5
    for params in ({"password": CANARY}, {"connect_timeout": 0}, {"connect_timeout": True}, {"cert_file": CANARY}):
        with pytest.raises(DponeError) as failed:
            options(Connection("x", "h", params=params))
        assert failed.value.code is ErrorCode.REQUEST_INVALID
        assert CANARY not in told(failed.value)


def test_a_connection_of_another_kind_is_refused() -> None:
    for options, kind in (
        (clickhouse_connections.driver_options, "postgres"),
        (postgres_connections.driver_options, "clickhouse"),
    ):
        with pytest.raises(DponeError, match=f"leads to {kind}"):
            options(Connection("x", "h", kind=kind))


def test_tls_is_verified_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    secure = Connection("x", "h", secure=True, ca_file=str(tmp_path / "ca.pem"))
    found = clickhouse_connections.driver_options(secure)
    assert found["secure"]
    assert "verify" not in found  # the driver's default is to verify
    assert found["ca_certs"] == secure.ca_file
    assert postgres_connections.driver_options(secure)["sslmode"] == "verify-full"
    assert postgres_connections.driver_options(secure)["sslrootcert"] == secure.ca_file
    with pytest.raises(DponeError, match="secure is not true"):
        clickhouse_connections.driver_options(Connection("x", "h", params={"verify": False}))
