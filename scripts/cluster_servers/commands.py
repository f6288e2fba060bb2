"""``up``, ``status`` and ``down``."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Iterator

from . import clickhouse, zookeeper
from .cluster import Cluster
from .home import Refused, created, existing, home_folder, locked, refuse_taken_ports, write_env
from .seed import TARGET_DATABASE, provide_tables
from .server import NotStarted, Server


def up(port: int | None) -> int:
    """Start what does not run, make the tables of the tutorial, say how to connect. Raises Refused."""
    _refuse_missing()
    began, folder = time.monotonic(), home_folder()
    with locked(folder):
        is_new = existing(folder) is None
        home = created(folder, port)
        cluster = home.cluster()
        try:
            refuse_taken_ports(cluster)
        except Refused:
            if is_new:
                home.remove()
            raise
        _start(cluster)
        provide_tables(cluster)
        write_env(home, _variables(cluster))
        _print_table(cluster)
    print(f"\nHealthy after {time.monotonic() - began:.1f} s. To connect from this shell, type:\n")
    print(f"    source {shlex.quote(str(home.env_file))}")
    return 0


def status() -> int:
    """Print what runs. Returns 0 when all of it does its work, 1 otherwise. Raises Refused."""
    home = existing(home_folder())
    if home is None:
        print("No cluster. To start one: scripts/cluster up")
        return 1
    cluster = home.cluster()
    return 0 if _print_table(cluster) else 1


def down(*, keep: bool) -> int:
    """End every server, by process id and start time; remove the folder unless ``keep``. Raises Refused."""
    folder = home_folder()
    if not folder.exists():
        print("No cluster: nothing to end.")
        return 0
    with locked(folder):
        home = existing(folder)
        if home is None:
            print("No cluster: nothing to end.")
            return 0
        for server in reversed(home.cluster().servers):
            server.end(signal.SIGTERM if keep else signal.SIGKILL)
        if not keep:
            home.remove()
    print("Ended; its data is kept for the next up." if keep else "Ended, and nothing is left.")
    return 0


def _refuse_missing() -> None:
    missing = [
        name
        for name, is_there in (
            ("clickhouse-server", clickhouse.is_installed()),
            ("zookeeper and Java", zookeeper.is_installed()),
        )
        if not is_there
    ]
    if missing:
        raise Refused(
            f"Not installed: {', '.join(missing)}. As root on Debian 12: scripts/servers clickhouse zookeeper"
        )


def _start(cluster: Cluster) -> None:
    running = [server for server in cluster.servers if server.is_alive]
    try:
        cluster.start()
    except NotStarted as failure:
        raise Refused(f"{failure}. To start afresh: scripts/cluster down && scripts/cluster up") from None
    except KeyboardInterrupt:
        for server in cluster.servers:
            if server not in running:
                server.kill()
        raise


def _variables(cluster: Cluster) -> dict[str, str]:
    return {
        **cluster.environ("replay_source", user="source_reader", database="source"),
        **cluster.environ("replay_target", user="dpone", database=TARGET_DATABASE),
        "DPONE_LEDGER": f"keeper://{cluster.keeper.hosts}/dpone",
    }


def _print_table(cluster: Cluster) -> bool:
    """Print a line a server. Whether all are ready."""
    print(f"{'server':<12} {'state':<14} {'port':>6} {'process':>9} {'memory':>9}")
    states = [(server, _state(server)) for server in cluster.servers]
    for server, state in states:
        process, memory = _figures(server)
        print(f"{server.name:<12} {state:<14} {server.ports[0]:>6} {process:>9} {memory:>9}")
    return all(state == "ready" for _, state in states)


def _state(server: Server) -> str:
    if not server.is_alive:
        return "not running"
    if server.process is not None and server.process.is_frozen:
        return "frozen"
    return "ready" if server.is_ready() else "not answering"


def _figures(server: Server) -> Iterator[str]:
    alive = server.process if server.is_alive else None
    yield str(alive.pid) if alive else "–"
    yield f"{alive.memory_mib} MiB" if alive else "–"
