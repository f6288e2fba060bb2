"""One ZooKeeper, as Debian ships it (3.8), on loopback."""

from __future__ import annotations

import shutil
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from .server import Server

_JARS: Final = ("/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar")
# forceSync: what a killed process wrote is safe in the system's cache; a machine without power loses this cluster.
_CONFIG: Final = """tickTime=1000
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
4lw.commands.whitelist=ruok,mntr,stat
forceSync=no
preAllocSize=1024
"""
_CLOSE: Final = struct.pack(">iii", 8, 1, -11)  # length, request number, "close the session"


class ZooKeeper(Server):
    """``hosts`` is what a client is told: ``127.0.0.1:PORT``."""

    READY_SECONDS: ClassVar[float] = 20.0

    def __init__(self, folder: Path, port: int, *, dies_with_us: bool) -> None:
        super().__init__("zookeeper", folder, dies_with_us=dies_with_us)
        self.port = port

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port,)

    def prepare(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        (self.folder / "zoo.cfg").write_text(_CONFIG.format(folder=self.folder, port=self.port))

    def command(self) -> Sequence[str]:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        classes = ":".join((str(self.folder), *_JARS))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return [str(shutil.which("java")), *options, "-cp", classes, main, str(self.folder / "zoo.cfg")]

    def is_ready(self) -> bool:
        """Whether it opens a session; it says ``imok`` before it can."""
        return has_session(self.port)


def is_installed() -> bool:
    """Whether Java and ZooKeeper's classes are there."""
    return shutil.which("java") is not None and all(Path(jar).exists() for jar in _JARS)


def has_session(port: int) -> bool:
    """Open a session, by ZooKeeper's own first frame (``ConnectRequest`` of zookeeper.jute), and close it."""
    request = struct.pack(">iqiqi16s", 0, 0, 5000, 0, 16, bytes(16))
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(2)
            connection.sendall(struct.pack(">i", len(request)) + request)
            reply = connection.recv(16, socket.MSG_WAITALL)
            connection.sendall(_CLOSE)
    except OSError:
        return False
    return len(reply) == 16 and struct.unpack(">iiii", reply)[2] > 0  # the agreed timeout; 0 would be a refusal
