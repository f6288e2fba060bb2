"""A PostgreSQL server by ``psycopg``, or by ADBC where rows are read: options in, safe errors out.

Port 5432 unless the connection says otherwise; a host that begins with ``/`` is the folder of a Unix socket. With
``secure`` true the certificate and the host name are verified (``sslmode=verify-full``), against ``ca_file`` or the
system's authorities; false turns TLS off; left out, TLS is used when the server offers it. Params:
``connect_timeout`` (seconds), ``sslmode``, ``cert_file``, ``key_file``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from ...domain.errors import DponeError
from .connection import Connection
from .params import Check, checked_params, file, one_of, require_kind, seconds
from .refusals import invalid, refused

if TYPE_CHECKING:
    import psycopg

KIND: Final = "postgres"
CONNECT_SECONDS: Final = 10
_PARAMS: Final[Mapping[str, Check]] = {
    "connect_timeout": seconds,
    "sslmode": one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "cert_file": file,
    "key_file": file,
}
_DRIVER_NAMES: Final[Mapping[str, str]] = {"cert_file": "sslcert", "key_file": "sslkey"}


def driver_options(connection: Connection) -> dict[str, Any]:
    """Keyword arguments of ``psycopg.connect``. Raises DponeError (REQUEST_INVALID)."""
    require_kind(connection, KIND)
    params = checked_params(connection, _PARAMS)
    if "sslmode" in params and connection.secure is not None:
        raise invalid(
            f"The connection {connection.reference!r}", "says both secure and sslmode", "Leave one of the two out."
        )
    options: dict[str, Any] = {
        "host": connection.host,
        "port": connection.port or 5432,
        "dbname": connection.database or "postgres",
        "user": connection.username or "postgres",
        "password": connection.password or "",
        "application_name": "dpone",
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "client_encoding": "UTF8",
    }
    if connection.secure is not None:
        options["sslmode"] = "verify-full" if connection.secure else "disable"
    if connection.ca_file is not None:
        options["sslrootcert"] = connection.ca_file
    elif connection.secure:
        options["sslrootcert"] = "system"
    if "connect_timeout" in params:
        params["connect_timeout"] = max(2, round(params["connect_timeout"]))  # libpq counts whole seconds, two or more
    return options | {_DRIVER_NAMES.get(name, name): value for name, value in params.items()}


@contextmanager
def opened(connection: Connection) -> Iterator[psycopg.Connection[Any]]:
    """An autocommitting connection, used by one caller and closed afterwards, never used again.

    Raises DponeError (CONNECTION_REFUSED, REQUEST_INVALID).
    """
    options = driver_options(connection)
    try:
        import psycopg
    except ImportError:
        raise _not_installed("psycopg") from None
    logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)  # its messages may quote the server's
    try:
        session = psycopg.connect(**options, autocommit=True)
    except psycopg.Error as error:
        raise _not_opened(connection, error) from None
    try:
        yield session
    finally:
        session.close()


@contextmanager
def copying(connection: Connection) -> Iterator[Any]:
    """An ``adbc_driver_postgresql`` connection in a transaction, closed (and rolled back) afterwards.

    Raises DponeError (CONNECTION_REFUSED, REQUEST_INVALID).
    """
    options = driver_options(connection)
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise _not_installed("adbc-driver-postgresql") from None
    try:
        session = dbapi.connect(_conninfo(options))
    except Error as error:
        raise _not_opened(connection, error) from None
    try:
        yield session
    finally:
        with suppress(Exception):  # it is thrown away, also when the server is gone
            session.close()


def _conninfo(options: Mapping[str, Any]) -> str:
    """libpq's ``keyword='value'`` form (its documentation, section 34.1.1)."""
    quoted = {name: str(value).replace("\\", "\\\\").replace("'", "\\'") for name, value in options.items()}
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())


def _not_installed(package: str) -> DponeError:
    return invalid("A PostgreSQL connection", f"needs {package}", "pip install 'dpone-replay[postgres]'")


def _not_opened(connection: Connection, error: Exception) -> DponeError:
    """libpq tells why only in words that name host, port and user: they are looked at, never passed on."""
    said = str(error).lower()
    state = getattr(error, "sqlstate", None)
    if state in ("28P01", "28000") or any(word in said for word in ("password", "pg_hba", 'role "')):
        return refused(
            connection.reference,
            "was refused by the server: user name, password or network is not allowed",
            "Check the user name and the password of the connection.",
        )
    if state == "3D000" or ("database" in said and "does not exist" in said):
        return refused(connection.reference, "names a database that the server does not have", "Correct the database.")
    if any(word in said for word in ("certificate", "ssl", "tls")):
        return refused(
            connection.reference,
            "failed at TLS: the server's certificate is not trusted, or it offers no TLS",
            "Check ca_file, the host name in the certificate, and secure or sslmode.",
        )
    return refused(
        connection.reference,
        "cannot be reached: no PostgreSQL server answers there",
        "Check that the server runs, and the host and port (5432) of the connection.",
    )
