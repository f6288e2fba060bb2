"""A ClickHouse server over its native protocol, by ``clickhouse-driver``: options in, safe errors out.

Ports 9000, and 9440 with TLS, unless the connection says otherwise. With TLS the certificate and the host name are
verified, against ``ca_file`` or the system's authorities; the param ``verify: false`` turns that off. Further params:
``connect_timeout`` (for each silence of the greeting, too) and ``receive_timeout`` (seconds), ``server_hostname``,
``cert_file``, ``key_file``, and ``compression`` (``lz4`` or ``zstd``; needs ``clickhouse-driver[lz4]`` or ``[zstd]``).
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from ...domain.errors import DponeError
from .connection import Connection
from .params import Check, checked_params, file, flag, one_of, require_kind, seconds, text
from .refusals import Unanswered, invalid, refused

KIND: Final = "clickhouse"
CONNECT_SECONDS: Final = 10.0
RECEIVE_SECONDS: Final = 300.0  # a working server reports progress all the time; silence means that it hangs
# The driver of this revision (sparse columns come later) speaks with every server, and all columns come dense.
_REVISION: Final = 54_453
_PARAMS: Final[Mapping[str, Check]] = {
    "connect_timeout": seconds,
    "receive_timeout": seconds,
    "verify": flag,
    "server_hostname": text,
    "cert_file": file,
    "key_file": file,
    "compression": one_of("lz4", "zstd"),
}
_DAYS: Final = "CLICKHOUSE_DRIVER_LASY_DATE_LUT"  # so spelled
_IMPORTING: Final = threading.Lock()
_DRIVER_NAMES: Final[Mapping[str, str]] = {
    "receive_timeout": "send_receive_timeout",
    "cert_file": "certfile",
    "key_file": "keyfile",
}
_DENIED: Final = (192, 193, 194, 195, 497, 516)
"""UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, IP_ADDRESS_NOT_ALLOWED, ACCESS_DENIED, AUTHENTICATION_FAILED."""


def driver_options(connection: Connection) -> dict[str, Any]:
    """Keyword arguments of ``clickhouse_driver.Client``. Raises DponeError (REQUEST_INVALID)."""
    require_kind(connection, KIND)
    params = checked_params(connection, _PARAMS)
    secure = bool(connection.secure)
    tls_only = {"verify", "server_hostname", "cert_file", "key_file"} & params.keys()
    if not secure and (tls_only or connection.ca_file):
        raise invalid(
            f"The connection {connection.reference!r}", "has TLS settings and secure is not true", "Set secure to true."
        )
    options: dict[str, Any] = {
        "host": connection.host,
        "port": connection.port,
        "database": connection.database or "default",
        "user": connection.username or "default",
        "password": connection.password or "",
        "secure": secure,
        "client_name": "dpone",
        "client_revision": _REVISION,
        "connect_timeout": CONNECT_SECONDS,
        "send_receive_timeout": RECEIVE_SECONDS,
        "disable_reconnect": True,
        "tcp_keepalive": True,
    }
    if connection.ca_file is not None:
        options["ca_certs"] = connection.ca_file
    return options | {_DRIVER_NAMES.get(name, name): value for name, value in params.items()}


@contextmanager
def opened(connection: Connection, settings: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """A connected ``clickhouse_driver.Client``, used by one caller and closed afterwards, never used again.

    The bound for connecting holds for each silence of the greeting too: a frozen server's system takes connections, and
    nothing follows.
    ``settings`` are the client's own and the server's. Raises DponeError (CONNECTION_REFUSED, REQUEST_INVALID).
    """
    options = driver_options(connection)
    receive_seconds = options["send_receive_timeout"]
    options["send_receive_timeout"] = min(receive_seconds, options["connect_timeout"])
    installed = driver()
    with failing(connection):
        client = installed.Client(**options, settings=dict(settings or {}))
    try:
        with failing(connection):
            client.connection.connect()
        client.connection.send_receive_timeout = receive_seconds
        client.connection.socket.settimeout(receive_seconds)
        yield client
    finally:
        interrupt(client)
        client.disconnect()


def interrupt(client: Any) -> None:
    """End whatever another thread waits for on this client."""
    open_socket = client.connection.socket
    if open_socket is not None:
        with suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def failing(connection: Connection) -> Iterator[None]:
    """The driver's failures while connecting, as ours: its own messages name host and port, or quote the server's."""
    from clickhouse_driver import errors

    try:
        yield
    except DponeError:
        raise
    except errors.ServerException as error:
        raise server_refused(connection, int(error.code)) from None
    except ssl.SSLError:
        raise _tls_refused(connection) from None
    except RuntimeError:
        raise invalid(
            f"The compression of the connection {connection.reference!r}",
            "needs a package that is not installed",
            "pip install 'clickhouse-driver[lz4,zstd]'",
        ) from None
    except (errors.Error, OSError, EOFError, ValueError) as error:
        # The driver turns it into an error of its own: its text (which is looked at, never passed on) begins with this.
        if str(getattr(error, "message", "")).startswith("[SSL"):
            raise _tls_refused(connection) from None
        raise refused(
            connection.reference,
            "cannot be reached: no ClickHouse server answers the native protocol there",
            "Check that the server runs, and the host and port (9000; 9440 with TLS) of the connection.",
            Unanswered,
        ) from None


def server_refused(connection: Connection, code: int) -> DponeError:
    """The server said no before any query ran."""
    if code in _DENIED:
        return refused(
            connection.reference,
            f"was refused by the server: user name, password or network is not allowed ({code})",
            "Check the user name and the password of the connection.",
        )
    if code == 81:
        return refused(connection.reference, "names a database that the server does not have", "Correct the database.")
    return refused(connection.reference, f"was refused by the server ({error_name(code)})", "Look at the server's log.")


def error_name(code: int) -> str:
    """ClickHouse's error by number and name, for example ``60 UNKNOWN_TABLE``."""
    from clickhouse_driver.errors import ErrorCodes

    names = (name for name, number in vars(ErrorCodes).items() if number == code)
    return f"{code} {next(names, '')}".strip()


def _tls_refused(connection: Connection) -> DponeError:
    return refused(
        connection.reference,
        "failed at TLS: the server's certificate is not trusted, or it does not speak TLS on that port",
        "Check ca_file, the host name in the certificate, and the port (9440 is usual).",
    )


def _not_installed(what: str) -> DponeError:
    return invalid("A ClickHouse connection", f"needs {what}", "pip install 'dpone-replay[clickhouse]'")


def driver() -> Any:
    """The driver's package. Raises DponeError (REQUEST_INVALID) where it is not installed."""
    try:
        with _IMPORTING:
            if "clickhouse_driver" not in sys.modules:
                _import_quickly()
        import clickhouse_driver
    except ImportError:
        raise _not_installed("clickhouse-driver") from None
    # Its warnings name host and port; everything worth saying is in the error that is raised.
    logging.getLogger("clickhouse_driver").setLevel(logging.CRITICAL + 1)
    return clickhouse_driver


def _import_quickly() -> None:
    """Left alone, the driver first fills a table of 146,000 days, 0.14 s of every process: let it fill it as needed."""
    if _DAYS in os.environ:
        return  # somebody else's choice
    os.environ[_DAYS] = "1970-01-01:1970-01-01"
    try:
        importlib.import_module("clickhouse_driver")
    finally:
        os.environ.pop(_DAYS, None)
