"""Real handshakes: a certificate is believed when an authority that is trusted signed it for this name, only then."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed

from dpone.adapters.connections import Connection
from dpone.adapters.connections import clickhouse as clickhouse_connections
from dpone.adapters.connections import postgres as postgres_connections
from dpone.adapters.sources.clickhouse import ClickHouseSource
from dpone.adapters.sources.postgres import PostgresSource
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.tables import Column, Metrics
from tests.servers.certificates import NAME, Certificates, made
from tests.servers.clickhouse import PASSWORD as CLICKHOUSE_PASSWORD
from tests.servers.clickhouse import ClickHouseServer, clickhouse_server
from tests.servers.postgres import PASSWORD as POSTGRES_PASSWORD
from tests.servers.postgres import PostgresServer, binaries, postgres_server
from tests.servers.required import require

ADDRESS = "127.0.0.1"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    require(shutil.which("openssl") is not None, "openssl")
    return made(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def clickhouse_with_tls(certificates: Certificates) -> Iterator[ClickHouseServer]:
    require(clickhouse_is_installed(), "clickhouse-server")
    with clickhouse_server(certificates) as server:
        server.execute("CREATE TABLE numbered (n UInt32) ENGINE = MergeTree ORDER BY n")
        server.execute("INSERT INTO numbered VALUES", [(1,), (2,)])
        yield server


@pytest.fixture(scope="module")
def postgres_with_tls(certificates: Certificates) -> Iterator[PostgresServer]:
    require(binaries() is not None, "PostgreSQL")
    with postgres_server(certificates) as server:
        server.execute("CREATE TABLE numbered (n int NOT NULL); INSERT INTO numbered VALUES (1), (2)")
        yield server


def to_clickhouse(server: ClickHouseServer, authority: Path | None, host: str = NAME, **params: Any) -> Connection:
    ca_file = None if authority is None else str(authority)
    port, password = server.secure_port, CLICKHOUSE_PASSWORD
    return Connection("x", host, port, None, "reader", password, secure=True, ca_file=ca_file, params=params)


def to_postgres(server: PostgresServer, authority: Path | None, host: str = NAME, **rest: Any) -> Connection:
    ca_file = None if authority is None else str(authority)
    given: dict[str, Any] = {"username": "reader", "password": POSTGRES_PASSWORD, "secure": True, **rest}
    return Connection("x", host, server.port, ca_file=ca_file, **given)


def rows_read(source: ClickHouseSource | PostgresSource) -> int:
    (column,) = source.describe()
    with source.read((Column("n", column.type),), Metrics(), lambda rows, size: None) as reading:
        return sum(batch.num_rows for batch in reading)


def assert_refused_at_tls(opened: Any, connection: Connection) -> None:
    with pytest.raises(DponeError, match="failed at TLS") as failed, opened(connection):
        pass
    assert failed.value.code is ErrorCode.CONNECTION_REFUSED


def test_clickhouse_is_read_over_tls(clickhouse_with_tls: ClickHouseServer, certificates: Certificates) -> None:
    connection = to_clickhouse(clickhouse_with_tls, certificates.authority)
    assert rows_read(ClickHouseSource(connection, table="numbered")) == 2


def test_clickhouse_with_an_authority_that_signed_nothing_is_refused(
    clickhouse_with_tls: ClickHouseServer, certificates: Certificates
) -> None:
    for authority in (certificates.stranger, None):  # None: the system's authorities, which do not know ours either
        assert_refused_at_tls(clickhouse_connections.opened, to_clickhouse(clickhouse_with_tls, authority))


def test_clickhouse_under_a_name_that_is_not_in_the_certificate_is_refused(
    clickhouse_with_tls: ClickHouseServer, certificates: Certificates
) -> None:
    assert_refused_at_tls(
        clickhouse_connections.opened, to_clickhouse(clickhouse_with_tls, certificates.authority, ADDRESS)
    )
    named = to_clickhouse(clickhouse_with_tls, certificates.authority, ADDRESS, server_hostname=NAME)
    with clickhouse_connections.opened(named) as client:
        assert client.execute("SELECT 1") == [(1,)]


def test_clickhouse_that_is_not_to_be_verified_is_read_whoever_it_is(
    clickhouse_with_tls: ClickHouseServer, certificates: Certificates
) -> None:
    for authority in (certificates.stranger, None):
        connection = to_clickhouse(clickhouse_with_tls, authority, ADDRESS, verify=False)
        with clickhouse_connections.opened(connection) as client:
            assert client.execute("SELECT 1") == [(1,)]


def test_clickhouse_without_tls_on_that_port_is_refused(
    clickhouse_with_tls: ClickHouseServer, certificates: Certificates
) -> None:
    server = clickhouse_with_tls
    plain = ClickHouseServer(server.port, server.folder, server.process, secure_port=server.port)
    with (
        pytest.raises(DponeError) as failed,
        clickhouse_connections.opened(to_clickhouse(plain, certificates.authority)),
    ):
        pass
    assert failed.value.code is ErrorCode.CONNECTION_REFUSED


def test_postgres_is_read_over_tls(postgres_with_tls: PostgresServer, certificates: Certificates) -> None:
    connection = to_postgres(postgres_with_tls, certificates.authority)
    assert rows_read(PostgresSource(connection, table="numbered")) == 2
    with postgres_connections.opened(connection) as session:
        used = session.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
    assert used == (True,)


@pytest.mark.parametrize("opened", [postgres_connections.opened, postgres_connections.copying])
def test_postgres_that_cannot_be_verified_is_refused(
    opened: Any, postgres_with_tls: PostgresServer, certificates: Certificates
) -> None:
    server = postgres_with_tls
    assert_refused_at_tls(opened, to_postgres(server, certificates.stranger))
    assert_refused_at_tls(opened, to_postgres(server, None))
    assert_refused_at_tls(opened, to_postgres(server, certificates.authority, ADDRESS))


@pytest.mark.parametrize("opened", [postgres_connections.opened, postgres_connections.copying])
def test_postgres_with_a_mode_of_libpq_checks_what_that_mode_checks(
    opened: Any, postgres_with_tls: PostgresServer, certificates: Certificates
) -> None:
    def connection(authority: Path, mode: str) -> Connection:
        return to_postgres(postgres_with_tls, authority, ADDRESS, secure=None, params={"sslmode": mode})

    with opened(connection(certificates.authority, "verify-ca")):
        pass
    assert_refused_at_tls(opened, connection(certificates.stranger, "verify-ca"))
    assert_refused_at_tls(opened, connection(certificates.authority, "verify-full"))


def test_postgres_that_offers_no_tls_is_refused(postgres: PostgresServer, certificates: Certificates) -> None:
    for opens in (postgres_connections.opened, postgres_connections.copying):
        assert_refused_at_tls(opens, to_postgres(postgres, certificates.authority))
