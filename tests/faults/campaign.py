"""A random campaign: one operation after another, one fault each, and the promises checked after every round.

The same seed draws the same faults in the same order; what the servers make of them is their own.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import assert_never

from dpone.domain.errors import ErrorCode
from tests.cli.sandbox import Ended, ended
from tests.integration.clickhouse_cluster.route import lines_of, points_of

from .fleet import Fleet
from .network import Network
from .phases import PHASES
from .promises import UNFINISHED, Expected, check_ending, check_finished, check_live
from .relay import Cut

ATTEMPTS_MAX = 5
SECONDS_OF_A_RUN = 180.0
ROWS = 1_000
AFTER_A_FAULT = UNFINISHED | {
    ErrorCode.SOURCE_UNREADABLE.value,
    ErrorCode.SUPERSEDED.value,
    ErrorCode.TARGET_BLOCKED.value,
    ErrorCode.LEDGER_CONFLICT.value,
}


class Kind(StrEnum):
    """What happens to a round's first process."""

    NOTHING = "nothing"
    KILL = "process killed"
    TERMINATE = "process asked to end"
    SUCCESSOR = "process frozen, a successor finishes, process thawed"
    RACE = "three processes at once"
    CUT = "connection cut"
    SERVER_FROZEN = "replica frozen"
    SERVER_KILLED = "replica killed"
    KEEPER_FROZEN = "Keeper frozen"


WEIGHTS = {
    Kind.NOTHING: 2,
    Kind.KILL: 6,
    Kind.TERMINATE: 3,
    Kind.SUCCESSOR: 3,
    Kind.RACE: 2,
    Kind.CUT: 6,
    Kind.SERVER_FROZEN: 1,
    Kind.SERVER_KILLED: 2,
    Kind.KEEPER_FROZEN: 1,
}


@dataclass(slots=True)
class Figures:
    """What a campaign did."""

    rounds: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def count(self, kind: Kind, endings: list[Ended], seconds: float) -> None:
        self.rounds[kind] += 1
        self.seconds.append(seconds)
        self.attempts[len(endings)] += 1
        for one in endings:
            self.endings[_ending(one)] += 1


def _ending(one: Ended) -> str:
    if one.code < 0:
        return signal.Signals(-one.code).name
    return "success" if one.code == 0 else str(one.result["error_code"])


@dataclass(slots=True)
class Campaign:
    """``folder`` takes the records of every process; ``say`` a line for each round."""

    fleet: Fleet
    folder: Path
    chance: random.Random
    say: Callable[[str], None]
    figures: Figures = field(default_factory=Figures)
    points: list[str] = field(default_factory=list)

    def rounds(self, seconds: float, most: int) -> Iterator[Network]:
        """Rounds until the time is over or there were ``most``; every target in turn. Raises AssertionError."""
        end = time.monotonic() + seconds
        for number in range(most):
            if time.monotonic() > end:
                return
            network = self.fleet.networks[number % len(self.fleet.networks)]
            self._round(number, network)
            yield network

    def _round(self, number: int, network: Network) -> None:
        route = network.route
        generation = max(route.rows, default=0) + 1
        route.write_source(generation, ROWS)
        run_id, place = f"r{generation}", self.folder / f"{number:04d}"
        place.mkdir(parents=True)
        kind = self._kind()
        if not self.points:
            kind = Kind.NOTHING
        began = time.monotonic()
        one = _Round(self, network, place, run_id, generation)
        try:
            told = one.inject(kind)
            self._mend()
            one.finish()
        except BaseException:
            self.say(f"{number:4d} {route.database} {run_id} {kind} {one.told}: FAILED, see {place}")
            raise
        took = time.monotonic() - began
        self.figures.count(kind, one.endings, took)
        shown = ", ".join(_ending(each) for each in one.endings)
        self.say(f"{number:4d} {route.database} {run_id} {kind} {told}: {shown} ({took:.1f} s)")
        if not self.points:
            self.points = [point.replace("+SlotOpened", "") for point in points_of(lines_of(place / "0"))]

    def _kind(self) -> Kind:
        return self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]

    def _mend(self) -> None:
        self.fleet.networks[0].disarm()
        self.fleet.cluster.start()


@dataclass(slots=True)
class _Round:
    campaign: Campaign
    network: Network
    place: Path
    run_id: str
    generation: int
    endings: list[Ended] = field(default_factory=list)
    started: int = 0
    told: str = ""

    def inject(self, kind: Kind) -> str:
        """Run with the fault; what it was, for a person."""
        chance, replicas = self.campaign.chance, self.campaign.fleet.cluster.replicas
        point = chance.choice(self.campaign.points or ["-"])
        server = chance.randrange(len(replicas))
        process = replicas[server].process
        assert process is not None
        match kind:
            case Kind.NOTHING:
                self._run("none")
            case Kind.KILL:
                self.told = f"at {point}"
                self._run(f"kill@{point}")
            case Kind.TERMINATE:
                self._terminate(chance.uniform(0.3, 4.0))
            case Kind.SUCCESSOR:
                self._overtaken(point)
            case Kind.RACE:
                self._race()
            case Kind.CUT:
                self._cut(chance.choice(list(PHASES)), chance.choice([cut for cut in Cut if cut is not Cut.LATE]))
            case Kind.SERVER_FROZEN:
                self.told = f"{server + 1} at {point}"
                self._run(f"freeze:{process.pid}@{point}")
            case Kind.SERVER_KILLED:
                self.told = f"{server + 1} at {point}"
                self._run(f"end:{process.pid}@{point}")
            case Kind.KEEPER_FROZEN:
                self._without_keeper(point)
            case _:
                assert_never(kind)
        return self.told

    def finish(self) -> None:
        """The same command until it says success; then every promise."""
        check_live(self.network.route, self.generation, self.generation - 1 or None)
        for _ in range(ATTEMPTS_MAX):
            expected = Expected.of(self.network.route, self.run_id, self.generation)
            finished = self._run("none")
            if finished.code == 0:
                records = [lines_of(self.place / str(number)) for number in range(self.started)]
                check_finished(self.network.route, expected, finished, self._in_order(records))
                return
        raise AssertionError(f"not complete after {ATTEMPTS_MAX} repetitions: {self.endings[-1]}")

    def _in_order(self, records: list[Sequence[str]]) -> list[Sequence[str]]:
        """Records of processes that ran at the same time say nothing about an order: only the last one's is left."""
        return records[-1:] if self.told.startswith("together") else records

    def _start(self, action: str) -> subprocess.Popen[str]:
        record = self.place / str(self.started)
        self.started += 1
        return self.network.start(record, action, self.run_id)

    def _run(self, action: str) -> Ended:
        return self._end(self._start(action))

    def _end(self, process: subprocess.Popen[str]) -> Ended:
        one = ended(process, SECONDS_OF_A_RUN)
        self.endings.append(one)
        if one.code not in (-signal.SIGKILL, -signal.SIGTERM):
            check_ending(one, AFTER_A_FAULT)
        return one

    def _terminate(self, seconds: float) -> None:
        self.told = f"after {seconds:.1f} s"
        process = self._start("none")
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.terminate()
        self._end(process)

    def _overtaken(self, point: str) -> None:
        self.told = f"together, at {point}"
        first = self._start(f"freeze@{point}")
        _await_stopped(first)
        self._run("none")
        first.send_signal(signal.SIGCONT)
        self._end(first)

    def _race(self) -> None:
        self.told = "together"
        for process in [self._start("none") for _ in range(3)]:
            self._end(process)

    def _cut(self, phase: str, cut: Cut) -> None:
        self.told = f"{phase}: {cut}"
        self.network.relays[PHASES[phase].relay].arm(cut, PHASES[phase].when)
        self._run("none")

    def _without_keeper(self, point: str) -> None:
        keeper = self.campaign.fleet.cluster.keeper.process
        assert keeper is not None
        self.told = f"at {point}"
        self._run(f"freeze:{keeper.pid}@{point}")


def _await_stopped(process: subprocess.Popen[str], seconds: float = 60.0) -> None:
    """Return when SIGSTOP holds it, or when it ended without reaching its point."""
    deadline = time.monotonic() + seconds
    options = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, process.pid, options) is None:
        assert time.monotonic() < deadline, "it neither stopped nor ended"
        time.sleep(0.02)
