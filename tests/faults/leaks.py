"""What must not be left behind: tables, processes, Keeper nodes, a second swap; threads, descriptors and memory."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone.domain.operation import State
from dpone.ledger.store import open_ledger
from tests.integration.clickhouse_cluster.route import Route

from .fleet import Fleet
from .promises import check_tables

_LOG_SECONDS: Final = 20.0
_GENERATIONS: Final = "/clickhouse/dpone"


@dataclass(frozen=True, slots=True)
class Held:
    """What a process holds."""

    descriptors: int
    threads: int
    memory_mib: int

    @classmethod
    def now(cls) -> Held:
        """Of this process."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            threading.active_count(),
            pages * os.sysconf("SC_PAGE_SIZE") // 2**20,
        )


def processes_of(folder: Path) -> list[int]:
    """Every process whose home is in the folder, zombies excepted."""
    wanted = f"DPONE_HOME={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def check_no_process(folder: Path, seconds: float = 15.0) -> None:
    """A worker dies with its parent, which may take a moment."""
    deadline = time.monotonic() + seconds
    while left := processes_of(folder):
        assert time.monotonic() < deadline, f"processes are left: {left}"
        time.sleep(0.1)


def check_tables_and_nodes(fleet: Fleet, platform_id: str) -> tuple[int, int]:
    """Tables are the ledger's; a generation's node is in the Keeper exactly while a replica has its table.

    Returns how many generations there are, and how many abandoned candidates.
    """
    left = sum(check_tables(route, f"r{max(route.rows)}") for route in fleet.routes if route.rows)
    listed = ", ".join(f"'{database}'" for database in fleet.databases)
    held = {
        str(path).rpartition("/")[2]
        for replica in fleet.cluster.replicas
        for (path,) in replica.execute(f"SELECT zookeeper_path FROM system.replicas WHERE database IN ({listed})")
    }
    where = f"{_GENERATIONS}/{platform_id}"
    nodes = {name for (name,) in fleet.cluster.execute(f"SELECT name FROM system.zookeeper WHERE path = '{where}'")}
    generations = {name for name in nodes if re.fullmatch(r"[0-9a-f]{32}|[0-9a-f-]{36}", name)}
    assert generations == held, f"nodes without tables: {generations - held}; tables without: {held - generations}"
    return len(generations), left


def ephemerals(fleet: Fleet) -> int:
    """Nodes in the Keeper that live as long as a session: those of the servers themselves are always there."""
    import socket

    with socket.create_connection(("127.0.0.1", fleet.cluster.keeper.port), timeout=5) as connection:
        connection.sendall(b"mntr")
        text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    return int(re.findall(r"zk_ephemerals_count\s+(\d+)", text)[0])


def completed(route: Route) -> list[str]:
    """The generations that the ledger says were published here, in hex."""
    from dpone.adapters.runtime.lookup import all_operations

    with open_ledger(route.ledger_url, create=False) as ledger:
        operations = [found.operation for found in all_operations(ledger)]
    return [
        operation.generation.id.replace("-", "")
        for operation in operations
        if operation.state is State.COMPLETE
        and operation.generation is not None
        and operation.key is not None
        and operation.key.database == route.database
    ]


def swaps_of(fleet: Fleet, replica: int) -> Counter[str]:
    """By generation: how many statements the server says it finished that put it under a target's name."""
    time.sleep(1.5)  # the server writes its query log once a second
    rows = fleet.cluster.replicas[replica].execute(
        "SELECT query FROM system.query_log WHERE type = 2 AND query LIKE '%RENAME TABLE%'"
    )
    found: Counter[str] = Counter()
    for (query,) in rows:
        if "ON CLUSTER" in query and "ddl_entry" not in query:
            continue  # what the first server queued; each server notes what it carried out itself
        if re.search(r"TO `?\w+`?\.`?records`?\s*(ON CLUSTER \S+\s*)?$", query.strip()):
            found.update(set(re.findall(r"__dpone_records_([0-9a-f]{32})_a", query)))
    return found
