"""``python -m tests.faults.process RECORD ACTION PORTS WORD…``: the recording composition, reached through relays.

ACTION is as in tests.integration.clickhouse_cluster.process. PORTS is ``FROM:TO,…``: whoever would connect to a
server's native port FROM connects to TO instead, the reader's worker included. Bounds are short.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpone.adapters.cli.entry import main
from dpone.adapters.cli.program import begin
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.adapters.reader import ServerReader
from dpone.adapters.runtime.compose import Composition
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from tests.crash.composition import composer
from tests.faults.redirecting import ports_of, redirect
from tests.integration.clickhouse_cluster.process import SHORT, ServerPoints

BUDGET_SECONDS = 25.0
"""Of the reader: more than its patience with a replica that is coming back."""


def _main(record: str, action: str, ports: str, words: list[str]) -> None:
    acting, _, point = action.partition("@")
    verb, _, server = acting.partition(":")
    redirect(ports_of(ports))
    recorded = composer(ServerPoints(Path(record), verb, point, server=int(server) if server else None))

    def composed(settings: Settings, process: Process) -> Composition:
        whole = recorded(settings, process)
        platform = whole.ports.platform.inner  # type: ignore[attr-defined]
        assert isinstance(platform, ReplicatedPlatform)
        platform._bounds = SHORT
        worker = (sys.executable, "-P", "-m", "tests.faults.worker", ports)
        recorder: Any = whole.ports.reader
        reader = ServerReader(
            platform._connection, tuple(platform._endpoints.values()), budget=BUDGET_SECONDS, command=worker
        )
        whole.ports = replace(whole.ports, reader=replace(recorder, inner=reader))
        return whole

    begin()
    main(words, composed)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
