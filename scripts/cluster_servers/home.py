"""The folder of a person's cluster: ports, passwords and processes, so that a later command finds them again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from scripts.flights import CHECKOUT

from .cluster import REPLICAS, Cluster
from .configuration import Passwords, Topology
from .seed import ALLOWED_DATABASES

PORT: Final = 29_000
_STATE: Final = "cluster.json"


class Refused(Exception):
    """The command cannot do what was asked; the message says why and what to type."""


def home_folder() -> Path:
    """``$DPONE_CLUSTER_HOME``, or ``.cluster`` of this checkout; absolute."""
    return Path(os.environ.get("DPONE_CLUSTER_HOME") or CHECKOUT / ".cluster").absolute()


@dataclass(frozen=True, slots=True)
class Home:
    """An opened folder. Ports follow from the first one: the Keeper, then the replicas', then those between them."""

    folder: Path
    port: int
    passwords: Passwords

    @property
    def env_file(self) -> Path:
        """What a shell sources to reach the cluster."""
        return self.folder / "env"

    def cluster(self) -> Cluster:
        """The cluster of this folder, with the processes that an earlier command started."""
        native = tuple(range(self.port + 1, self.port + 1 + REPLICAS))
        between = tuple(port + 10 for port in native)
        topology = Topology(self.port, native, between, self.passwords, ALLOWED_DATABASES)
        made = Cluster(self.folder, topology, dies_with_us=False)
        for server in made.servers:
            server.attach()
        return made

    def remove(self) -> None:
        """Take away what ``up`` made, and the folder when nothing else is in it."""
        for server in self.cluster().servers:
            shutil.rmtree(server.folder, ignore_errors=True)
        for file in (self.env_file, self.folder / _STATE):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def created(folder: Path, port: int | None) -> Home:
    """The folder's cluster; a new one, with fresh passwords, when there is none. One that rests may change its port.

    Raises Refused.
    """
    found = existing(folder)
    if found is None and any(folder.iterdir()):
        raise Refused(f"The folder {folder.name} holds other things; name another one in DPONE_CLUSTER_HOME")
    if found is not None and port in (None, found.port):
        return found
    if found is not None and any(server.is_alive for server in found.cluster().servers):
        raise Refused(f"It runs on port {found.port}. To move it: scripts/cluster down --keep, and up again")
    passwords = found.passwords if found else Passwords(*(secrets.token_urlsafe(18) for _ in range(3)))
    made = Home(folder, port or PORT, passwords)
    _write_private(folder / _STATE, json.dumps({"port": made.port, "passwords": asdict(made.passwords)}))
    return made


def existing(folder: Path) -> Home | None:
    """The folder's cluster, or None. Raises Refused when its file cannot be read."""
    try:
        state = json.loads((folder / _STATE).read_text())
        return Home(folder, int(state["port"]), Passwords(**state["passwords"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(f"{folder.name}/{_STATE} cannot be read as what scripts/cluster wrote") from None


def write_env(home: Home, variables: dict[str, str]) -> None:
    """Write ``export NAME='value'`` lines that only the owner can read."""
    _write_private(home.env_file, "".join(f"export {name}='{value}'\n" for name, value in variables.items()))


def refuse_taken_ports(cluster: Cluster) -> None:
    """Raises Refused, naming the port, when another program listens where a server is to be started."""
    for server in cluster.servers:
        for port in () if server.is_alive else server.ports:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    raise Refused(
                        f"Port {port}, for {server.name}, is taken by another program (ss -ltnp shows which). "
                        f"Choose others: scripts/cluster up --port {cluster.keeper.port + 100}"
                    ) from None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One command at a time: a lock on the folder itself, which is made when it is absent. Raises Refused."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            raise Refused(f"The folder {folder.name} cannot be made; name another one in DPONE_CLUSTER_HOME") from None
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_still(folder, descriptor):
                yield
                return
        finally:
            os.close(descriptor)


def _is_still(folder: Path, descriptor: int) -> bool:
    """Whether the folder at this path is the one that was locked: ``down`` may have removed it meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    return False


def _write_private(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)
