"""Loads from the two servers, with their connections given by each provider in turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.servers.clickhouse import PASSWORD as CLICKHOUSE_PASSWORD
from tests.servers.clickhouse import ClickHouseServer
from tests.servers.postgres import PASSWORD as POSTGRES_PASSWORD
from tests.servers.postgres import PostgresServer

PASSWORDS = (CLICKHOUSE_PASSWORD, POSTGRES_PASSWORD)
PROVIDERS = ("part", "url", "file", "airflow", "airflow json", "toml")
COLUMNS = {"id": "UInt32", "name": "String"}

Login = tuple[str, str, int, str, str]
"""Reference, kind, port, database, password; the user is called reader."""


def logins(clickhouse: ClickHouseServer, postgres: PostgresServer) -> tuple[Login, Login]:
    """The right ones."""
    return (
        ("from_clickhouse", "clickhouse", clickhouse.port, "default", CLICKHOUSE_PASSWORD),
        ("from_postgres", "postgres", postgres.port, "postgres", POSTGRES_PASSWORD),
    )


def provided(provider: str, given: tuple[Login, ...], folder: Path) -> dict[str, str]:
    """The environment in which ``provider`` knows the logins; files that it needs are made in ``folder``."""
    if provider == "toml":
        tables = [
            f'[{reference}]\nhost = "127.0.0.1"\nport = {port}\ndatabase = "{database}"\nusername = "reader"\n'
            f'password = "{password}"\n'
            for reference, _, port, database, password in given
        ]
        return {"DPONE_CONNECTIONS": str(_private(folder / "connections.toml", "\n".join(tables)))}
    environment: dict[str, str] = {}
    for login in given:
        environment |= _one(provider, login, folder)
    return environment


def _one(provider: str, login: Login, folder: Path) -> dict[str, str]:
    reference, kind, port, database, password = login
    stem, url = f"DPONE_CONN_{reference.upper()}", f"{kind}://reader:{quote(password)}@127.0.0.1:{port}/{database}"
    parts = {"HOST": "127.0.0.1", "PORT": str(port), "DATABASE": database, "USERNAME": "reader"}
    match provider:
        case "part":
            return {f"{stem}_{name}": value for name, value in {**parts, "PASSWORD": password}.items()}
        case "url":
            return {f"{stem}_URL": url}
        case "file":
            secret = _private(folder / f"{reference}.secret", password + "\n")
            return {f"{stem}_{name}": value for name, value in {**parts, "PASSWORD_FILE": str(secret)}.items()}
        case "airflow":
            return {f"AIRFLOW_CONN_{reference.upper()}": url}
        case _:
            said = {"conn_type": kind, "host": "127.0.0.1", "port": port, "schema": database, "login": "reader"}
            return {f"AIRFLOW_CONN_{reference.upper()}": json.dumps({**said, "password": password})}


def _private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def flow(folder: Path) -> Path:
    """A flow of two loads of ``canary_rows``, one from each server."""
    processes = [_process("one", "clickhouse", "default"), _process("two", "postgres", "public")]
    data = {"kind": "dpone.flow.v1", "metadata": {"id": "canaries"}, "processes": processes}
    path = folder / "canaries.flow.yaml"
    path.write_text(json.dumps(data, indent=1))
    return path


def _process(name: str, kind: str, schema: str) -> dict[str, Any]:
    return {
        "name": name,
        "source": {
            "type": kind,
            "connection_ref": f"from_{kind}",
            "table": {"schema": schema, "name": "canary_rows"},
        },
        "sink": {
            "type": "clickhouse",
            "connection_ref": "embedded",
            "table": {"schema": "db", "name": name},
            "columns": COLUMNS,
            "strategy": {"mode": "full_refresh"},
            "options": {"durable_quality_replay": True},
        },
        "quality": {
            "gates": [{"type": "row_count_reconciliation"}, {"type": "typed_hash_reconciliation"}],
            "acceptance": {"enabled": True, "checks": {"row_count": True, "distinct_counts": ["id", "name"]}},
        },
    }
