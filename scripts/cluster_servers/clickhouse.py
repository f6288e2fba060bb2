"""One replica: a ClickHouse server, as Debian ships it (18.16), on loopback."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from .configuration import Topology, config_xml, users_xml
from .server import Server


class ClickHouseReplica(Server):
    """``number`` counts from 1; ``name`` is what its ``{replica}`` macro says."""

    READY_SECONDS: ClassVar[float] = 10.0

    def __init__(self, folder: Path, topology: Topology, number: int, *, dies_with_us: bool) -> None:
        super().__init__(f"replica_{number}", folder, dies_with_us=dies_with_us)
        self._topology = topology
        self._number = number

    @property
    def port(self) -> int:
        """Of the native protocol."""
        return self._topology.native[self._number - 1]

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port, self._topology.interserver[self._number - 1])

    def prepare(self) -> None:
        for name in ("data", "tmp", "files", "format_schemas"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "config.xml").write_text(config_xml(self._topology, self._number, self.folder))
        users = self.folder / "users.xml"
        users.touch(mode=0o600)
        users.write_text(users_xml(self._topology))

    def command(self) -> Sequence[str]:
        return [str(shutil.which("clickhouse-server")), f"--config-file={self.folder}/config.xml"]

    def is_ready(self) -> bool:
        """Whether it answers, and reaches its Keeper."""
        with contextlib.suppress(Exception):
            rows = self.execute("SELECT count() FROM system.zookeeper WHERE path = '/'", seconds=2)
            return bool(rows[0][0] > 0)
        return False

    def wait_sessions(self, seconds: float) -> bool:
        """Wait until every replicated table has a session with the Keeper; False when some have none by then.

        After the Keeper was away the tables try again every ten seconds (a constant of the server) and are read-only
        until then.
        """
        deadline = time.monotonic() + seconds
        while self.execute("SELECT count() FROM system.replicas WHERE is_session_expired")[0][0] > 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def execute(
        self,
        statement: str,
        rows: Any = None,
        *,
        settings: Mapping[str, Any] | None = None,
        seconds: float = 60,
        user: str = "default",
        password: str = "",
    ) -> Any:
        """One statement on a connection of its own; ``rows`` for an INSERT … VALUES. Raises the driver's errors."""
        return execute(self.port, statement, rows, settings=settings, seconds=seconds, user=user, password=password)


def is_installed() -> bool:
    """Whether there is a server to start."""
    return shutil.which("clickhouse-server") is not None


def execute(
    port: int,
    statement: str,
    rows: Any = None,
    *,
    settings: Mapping[str, Any] | None = None,
    seconds: float = 60,
    user: str = "default",
    password: str = "",
) -> Any:
    """One statement on a connection of its own to the server at a loopback port. Raises the driver's errors."""
    import clickhouse_driver

    logging.getLogger("clickhouse_driver").setLevel(logging.CRITICAL + 1)  # it warns while a server starts
    with clickhouse_driver.Client(
        "127.0.0.1",
        port,
        user=user,
        password=password,
        connect_timeout=2,
        send_receive_timeout=seconds,
        client_revision=54_453,
        settings={"strings_as_bytes": False, **(settings or {})},
    ) as client:
        return client.execute(statement, rows) if rows is not None else client.execute(statement)
