"""``python -m tests.integration.clickhouse_cluster.process RECORD ACTION WORD…``: recording, short bounds.

ACTION is as in tests.crash.process, or ``freeze:PID@POINT`` and ``end:PID@POINT``, which stop a server at that point.
``patient,`` before it leaves the bounds as they are: an old server takes ten seconds to fetch a table that it lost.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from dpone.adapters.cli.entry import main
from dpone.adapters.cli.program import begin
from dpone.adapters.cluster.bounds import Bounds
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.adapters.runtime.compose import Composition
from dpone.adapters.runtime.settings import Settings
from dpone.domain.configuration import Process
from tests.crash.composition import Points, composer

SHORT = Bounds(connect=2, look=3, statement=6, everywhere=4, insert=6, scan=6, synchronise=6)
_SIGNALS = {"freeze": signal.SIGSTOP, "end": signal.SIGKILL}


@dataclass(slots=True)
class ServerPoints(Points):
    """Stops a server instead of this process when the action names one."""

    server: int | None = None

    def reach(self, point: str) -> None:
        if self.server is None:
            Points.reach(self, point)
            return
        self.note(f"point {point}")
        if point == self.at:
            os.kill(self.server, _SIGNALS[self.action])


def _main(record: str, action: str, words: list[str]) -> None:
    patient, action = action.startswith("patient,"), action.removeprefix("patient,")
    acting, _, point = action.partition("@")
    verb, _, server = acting.partition(":")
    points = ServerPoints(Path(record), verb, point, server=int(server) if server else None)
    recorded = composer(points)

    def composed(settings: Settings, process: Process) -> Composition:
        whole = recorded(settings, process)
        platform = whole.ports.platform.inner  # type: ignore[attr-defined]
        assert isinstance(platform, ReplicatedPlatform)
        if not patient:
            platform._bounds = SHORT
        return whole

    begin()
    main(words, composed)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
