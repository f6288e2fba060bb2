"""One ClickHouse server without a Keeper, as Debian ships it (18.16); for its users see ``_USERS``."""

from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .certificates import Certificates
from .processes import free_port, removed, started, stop

PASSWORD = "s3cr3t-c4n4ry-ch"
_STARTS = 4  # about one start in fifty of this old version hangs

_CONFIG = """<yandex>
  <logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>{port}</tcp_port>
  <path>{folder}/data/</path>
  <tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path>
  <users_config>{folder}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <timezone>UTC</timezone>
  <mlock_executable>false</mlock_executable>
  {tls}
</yandex>
"""
_TLS = """<tcp_port_secure>{port}</tcp_port_secure>
  <openSSL><server>
    <certificateFile>{certificate}</certificateFile>
    <privateKeyFile>{key}</privateKeyFile>
    <verificationMode>none</verificationMode>
    <loadDefaultCAFile>false</loadDefaultCAFile>
    <cacheSessions>false</cacheSessions>
    <disableProtocols>sslv2,sslv3</disableProtocols>
  </server></openSSL>"""
_USERS = """<yandex>
  <profiles>
    <default><max_threads>2</max_threads>
      <allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type></default>
    <locked><readonly>1</readonly></locked>
    <cutting><max_result_rows>1000</max_result_rows><result_overflow_mode>break</result_overflow_mode></cutting>
  </profiles>
  <quotas><default></default></quotas>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></default>
    <reader><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota></reader>
    <locked><password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>locked</profile><quota>default</quota></locked>
    <cutting><password></password><networks><ip>127.0.0.1</ip></networks>
      <profile>cutting</profile><quota>default</quota></cutting>
  </users>
</yandex>
"""


@dataclass(slots=True)
class ClickHouseServer:
    """A running server; ``execute`` runs one statement as the default user. ``secure_port`` 0: it speaks no TLS."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]
    secure_port: int = 0

    def set_password(self, password: str) -> None:
        """A new password for the user ``reader``; the server looks at its users' file every two seconds."""
        draft = self.folder / "users.draft"
        draft.write_text(_USERS.format(password=password))
        draft.replace(self.folder / "users.xml")

    def execute(self, statement: str, rows: Any = None) -> Any:
        """One statement on a connection of its own; ``rows`` for an INSERT … VALUES."""
        return _execute(self.port, statement, rows)


def _execute(port: int, statement: str, rows: Any = None, seconds: float = 30) -> Any:
    import clickhouse_driver

    logging.getLogger("clickhouse_driver").setLevel(logging.CRITICAL + 1)  # it warns while a server starts
    with clickhouse_driver.Client(
        "127.0.0.1",
        port,
        connect_timeout=2,
        send_receive_timeout=seconds,
        client_revision=54_453,
        settings={"strings_as_bytes": False},
    ) as client:
        return client.execute(statement, rows) if rows is not None else client.execute(statement)


def _tls(certificates: Certificates, port: int) -> str:
    return _TLS.format(port=port, certificate=certificates.certificate, key=certificates.key)


def _answers(port: int) -> bool:
    with contextlib.suppress(Exception):
        return bool(_execute(port, "SELECT 1", seconds=1) == [(1,)])
    return False


@contextlib.contextmanager
def clickhouse_server(certificates: Certificates | None = None) -> Iterator[ClickHouseServer]:
    """Start one (with certificates also on a port with TLS), yield it, end it and take its folder away."""
    folder = Path(tempfile.mkdtemp(prefix="dpone-test-clickhouse-"))
    process: subprocess.Popen[bytes] | None = None
    try:
        for _ in range(_STARTS):
            port, secure_port = free_port(), free_port() if certificates else 0
            tls = _tls(certificates, secure_port) if certificates else ""
            (folder / "config.xml").write_text(_CONFIG.format(folder=folder, port=port, tls=tls))
            (folder / "users.xml").write_text(_USERS.format(password=PASSWORD))
            command = [str(shutil.which("clickhouse-server")), f"--config-file={folder}/config.xml"]
            process = started(command, folder, lambda port=port: _answers(port))  # type: ignore[misc]
            if process is not None:
                break
        if process is None:
            raise RuntimeError("clickhouse-server did not start")
        yield ClickHouseServer(port, folder, process, secure_port)
    finally:
        if process is not None:
            stop(process)
        removed(folder)
