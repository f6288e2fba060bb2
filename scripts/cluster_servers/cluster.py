"""The three servers as one thing: started, healed, ended; and what a program needs to connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from .clickhouse import ClickHouseReplica
from .configuration import CLUSTER, Passwords, Topology
from .server import Server, free_ports, start_together
from .zookeeper import ZooKeeper

REPLICAS: Final = 2


def free_topology(passwords: Passwords, databases: tuple[str, ...] = ()) -> Topology:
    """Ports that nobody uses at the moment, for a cluster that ends with this process."""
    keeper, *rest = free_ports(1 + 2 * REPLICAS)
    return Topology(keeper, tuple(rest[:REPLICAS]), tuple(rest[REPLICAS:]), passwords, databases)


class Cluster:
    """Two replicas and their Keeper, in one folder (absolute)."""

    name = CLUSTER

    def __init__(self, folder: Path, topology: Topology, *, dies_with_us: bool) -> None:
        self.folder = folder
        self.topology = topology
        self.keeper = ZooKeeper(folder / "zookeeper", topology.keeper, dies_with_us=dies_with_us)
        self.replicas = tuple(
            ClickHouseReplica(folder / f"replica_{number}", topology, number, dies_with_us=dies_with_us)
            for number in range(1, len(topology.native) + 1)
        )

    @property
    def servers(self) -> tuple[Server, ...]:
        """All three, the Keeper first."""
        return (self.keeper, *self.replicas)

    def start(self) -> None:
        """Start what does not run, thaw what is frozen, and wait until all are ready. Raises NotStarted.

        A replica whose tables lost their Keeper is started again: they would wait up to ten seconds to look for it.
        """
        for server in self.servers:
            server.thaw()
        self.keeper.start()
        start_together([replica for replica in self.replicas if not replica.is_alive])
        for replica in self.replicas:
            replica.wait_ready()
            if not replica.wait_sessions(1.0):
                replica.kill()
                replica.start()

    def end(self) -> None:
        """End all at once. What they kept stays in the folder."""
        for server in reversed(self.servers):
            server.kill()

    def execute(self, statement: str, rows: Any = None, **options: Any) -> Any:
        """One statement on the first replica, see ``ClickHouseReplica.execute``."""
        return self.replicas[0].execute(statement, rows, **options)

    def environ(self, reference: str = "replay_target", user: str = "dpone", database: str = "") -> dict[str, str]:
        """The variables that bind a connection reference to the first replica, as one of the users with a password."""
        prefix = f"DPONE_CONN_{reference.upper()}_"
        values = {
            "HOST": "127.0.0.1",
            "PORT": str(self.replicas[0].port),
            "DATABASE": database or "default",
            "USERNAME": user,
            "PASSWORD": str(getattr(self.topology.passwords, user)),
        }
        return {prefix + name: value for name, value in values.items()}
