"""One PostgreSQL server from Debian's package, on loopback and a Unix socket, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .certificates import Certificates
from .processes import free_port, removed, started, stop, unprivileged

PASSWORD = "s3cr3t-c4n4ry-pg"


@dataclass(slots=True)
class PostgresServer:
    """A running server; user ``reader`` (a superuser here) with ``PASSWORD``."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """One or more statements on a connection of their own; the rows of the last."""
        import psycopg

        with psycopg.connect(**_options(self.port), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def binaries() -> Path | None:
    """Debian keeps them out of the search path, a folder a version; the newest."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).parent if initdb else None


def _options(port: int) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": port,
        "user": "reader",
        "password": PASSWORD,
        "dbname": "postgres",
        "connect_timeout": 3,
    }


def _answers(port: int) -> bool:
    import psycopg

    with contextlib.suppress(psycopg.Error), psycopg.connect(**_options(port)):
        return True
    return False


def _tls(certificates: Certificates, folder: Path, user: str | None) -> dict[str, Any]:
    """Settings with copies that only the server's user may read, as it demands."""
    settings: dict[str, Any] = {"ssl": "on"}
    for name, path in (("ssl_cert_file", certificates.certificate), ("ssl_key_file", certificates.key)):
        copy = Path(shutil.copyfile(path, folder / path.name))
        copy.chmod(0o600)
        if user is not None:
            shutil.chown(copy, user)
        settings[name] = copy
    return settings


@contextlib.contextmanager
def postgres_server(certificates: Certificates | None = None) -> Iterator[PostgresServer]:
    """Start one (with certificates it offers TLS), yield it, end it and take its folder away."""
    folder, programs, user = Path(tempfile.mkdtemp(prefix="dpone-test-postgres-")), binaries(), unprivileged()
    if programs is None:
        raise RuntimeError("PostgreSQL is not installed")
    process: subprocess.Popen[bytes] | None = None
    try:
        if user is not None:
            shutil.chown(folder, user)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        command = [
            str(programs / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            "reader",
            "--auth=scram-sha-256",
            "-E",
            "UTF8",
        ]
        subprocess.run(
            [*command, f"--pwfile={secret}", "--no-sync", "--locale=C.UTF-8"],
            check=True,
            capture_output=True,
            cwd=folder,
            user=user,
            timeout=60,
            env={"PATH": os.defpath},
        )
        port = free_port()
        settings: dict[str, Any] = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": folder,
            "fsync": "off",
        }
        if certificates is not None:
            settings |= _tls(certificates, folder, user)
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        process = started(
            [str(programs / "postgres"), "-D", str(folder / "data"), *options],
            folder,
            lambda: _answers(port),
            user,
            seconds=60,
        )
        if process is None:
            raise RuntimeError("PostgreSQL did not start")
        yield PostgresServer(port, folder, process)
    finally:
        if process is not None:
            stop(process, signal.SIGQUIT)  # its immediate shutdown
        removed(folder)
