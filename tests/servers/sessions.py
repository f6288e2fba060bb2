"""One server for all tests of a session: started when the first test needs it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from .clickhouse import ClickHouseServer, clickhouse_server
from .postgres import PostgresServer, binaries, postgres_server


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouseServer]:
    """A ClickHouse server; the test is skipped, loudly, where none is installed."""
    if shutil.which("clickhouse-server") is None:
        pytest.skip("clickhouse-server is not installed; scripts/servers installs it")
    with clickhouse_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; the test is skipped, loudly, where none is installed."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed; scripts/servers installs it")
    with postgres_server() as server:
        yield server
