"""A route on the real cluster whose every connection goes through a relay, and one faulted run after another on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cli.sandbox import Ended, Sandbox, ended
from tests.integration.clickhouse_cluster.route import Route, admitted_route
from tests.servers.cluster import Cluster

from .relay import Relay, relay_to

PROGRAM = "tests.faults.process"


@dataclass(slots=True)
class Network:
    """``replicas``: a relay to each, for target and reader. ``source``: to the first, for the source alone."""

    route: Route
    replicas: tuple[Relay, ...]
    source: Relay
    keeper: Relay

    @property
    def relays(self) -> dict[str, Relay]:
        """By the name that a case gives them."""
        numbered = {f"replica {number}": relay for number, relay in enumerate(self.replicas, 1)}
        return {**numbered, "source": self.source, "keeper": self.keeper}

    def start(self, record: Path, action: str, run_id: str) -> subprocess.Popen[str]:
        """``dpone run`` through the relays, with short bounds and recorded points."""
        import sys

        ports = ",".join(
            f"{replica.port}:{relay.port}"
            for replica, relay in zip(self.route.cluster.replicas, self.replicas, strict=True)
        )
        sandbox = self._sandbox()
        words = [str(record), action, ports, *sandbox.words(run_id)]
        return sandbox.start(words, (sys.executable, "-m", PROGRAM))

    def run(self, record: Path, action: str, run_id: str, seconds: float = 120) -> Ended:
        """The same to its end."""
        return ended(self.start(record, action, run_id), seconds)

    def disarm(self) -> None:
        """All connections are good again."""
        for relay in self.relays.values():
            relay.disarm()

    def _sandbox(self) -> Sandbox:
        root = self.route.ledger_url.rpartition("/")[2]
        return replace(
            self.route.sandbox,
            environment={
                **self.route.sandbox.environment,
                "DPONE_LEDGER": f"keeper://127.0.0.1:{self.keeper.port}/{root}",
                "DPONE_CONN_REPLAY_SOURCE_PORT": str(self.source.port),
            },
        )


@contextmanager
def relayed(cluster: Cluster, folder: Path) -> Iterator[Network]:
    """An admitted route with one generation published, behind relays; taken away afterwards."""
    with admitted_route(cluster, folder) as route, ExitStack() as stack:
        first = route.run("r1")
        assert first.code == 0, first
        yield over(route, stack)


def over(route: Route, stack: ExitStack, seed: int = 0) -> Network:
    """Relays for a route, which end with the stack."""
    cluster = route.cluster

    def to(port: int) -> Relay:
        return stack.enter_context(relay_to(port, seed))

    replicas = tuple(to(replica.port) for replica in cluster.replicas)
    return Network(route, replicas, to(cluster.replicas[0].port), to(cluster.keeper.port))
