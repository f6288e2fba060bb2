"""A campaign's figures: what leaked, measured; and the page that they are written into."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import dpone

from .campaign import Figures
from .fleet import Fleet
from .leaks import Held, check_no_process, check_tables_and_nodes, completed, ephemerals, swaps_of
from .network import Network

EVERY = 5
"""Rounds between two replays inside this process, which lives as long as the campaign."""
DESCRIPTORS_MORE = 4
THREADS_MORE = 2
MEMORY_MORE_MIB = 64
_PART = re.compile(r"(<!-- campaign -->\n).*?(<!-- /campaign -->)", re.DOTALL)


@dataclass(slots=True)
class Leaks:
    """Measures this process after replays inside it: threads, descriptors and memory of the product show here."""

    fleet: Fleet
    folder: Path
    rounds: int = 0
    replays: int = 0
    held: list[Held] = field(default_factory=list)
    before: int = field(init=False)

    def __post_init__(self) -> None:
        self.before = ephemerals(self.fleet)

    def after_a_round(self, network: Network) -> None:
        """Every few rounds: replay in this process, see what it holds, and that no other process is left."""
        self.rounds += 1
        if self.rounds % EVERY:
            return
        route = network.route
        run_id = f"r{max(route.rows)}"
        outcome = dpone.run(route.sandbox.manifest, dag_id="d", run_id=run_id, environ=route.sandbox.variables())
        assert outcome.passed, outcome
        self.replays += 1
        check_no_process(self.folder)
        self.held.append(_settled())

    def at_the_end(self, figures: Figures, seed: int, seconds: float) -> str:
        """Check everything once more; the figures as a table. Raises AssertionError."""
        check_no_process(self.folder)
        route = self.fleet.routes[0]
        generations, left = check_tables_and_nodes(self.fleet, _platform_of(route.found("r1")))
        events = _verified(route.findings(), self.fleet)
        sessions = self._check_sessions()
        swaps = self._check_swaps()
        self._check_held()
        return _table(
            {
                "run": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, seed {seed}, {os.cpu_count()} cores, "
                f"Python {platform.python_version()}",
                "operations, all COMPLETE": sum(figures.rounds.values()),
                "targets": len(self.fleet.networks),
                "replicas": len(self.fleet.cluster.replicas),
                "duration": f"{seconds / 60:.0f} min",
                "events in the ledger, chains and order verified": events,
                "commands run for one operation, most": max(figures.attempts),
                "seconds an operation, median / most": f"{statistics.median(figures.seconds):.1f} / "
                f"{max(figures.seconds):.1f}",
                "effective swaps by replica, never a second one of a generation": swaps,
                "generations in the Keeper, each with its tables": generations,
                "ephemeral nodes in the Keeper, before / after": f"{self.before} / {sessions}",
                "candidates that a stale process created late, for `ops sweep`": left,
                "other tables that the ledger does not list": 0,
                "processes left": 0,
                **self._held_figures(),
            },
            figures,
        )

    def _check_sessions(self) -> int:
        """One for each table that is replicated, and the servers' own: none of a client's is left."""
        own = self.before
        tables = sum(
            int(replica.execute("SELECT count() FROM system.replicas WHERE is_leader OR NOT is_leader")[0][0])
            for replica in self.fleet.cluster.replicas
        )
        now = ephemerals(self.fleet)
        assert now <= own + 2 * tables, f"{now} ephemeral nodes, {own} before, {tables} tables"
        return now

    def _check_swaps(self) -> str:
        wanted = {generation for route in self.fleet.routes for generation in completed(route)}
        told = []
        for number in range(len(self.fleet.cluster.replicas)):
            swapped = swaps_of(self.fleet, number)
            twice = {generation: count for generation, count in swapped.items() if count > 1}
            assert not twice, f"swapped more than once on replica {number + 1}: {twice}"
            told.append(f"{len(wanted & swapped.keys())} of {len(wanted)}")
        return " and ".join(told) + " seen in the servers' query logs"

    def _check_held(self) -> None:
        if len(self.held) < 3:
            return
        first, last = self.held[1], self.held[-1]
        assert last.descriptors <= first.descriptors + DESCRIPTORS_MORE, self.held
        assert last.threads <= first.threads + THREADS_MORE, self.held
        assert last.memory_mib <= first.memory_mib + MEMORY_MORE_MIB, self.held

    def _held_figures(self) -> dict[str, str]:
        if len(self.held) < 2:
            return {}
        first, last = self.held[1] if len(self.held) > 2 else self.held[0], self.held[-1]
        return {
            f"after a replay in one long-lived process, second / last of {self.replays}": f"descriptors "
            f"{first.descriptors} / {last.descriptors}, threads {first.threads} / {last.threads}, memory "
            f"{first.memory_mib} / {last.memory_mib} MiB"
        }


def written(page: Path, table: str) -> None:
    """Replace the campaign's part of the page. Raises ValueError when the page has none."""
    before = page.read_text()
    if _PART.search(before) is None:
        raise ValueError(f"{page.name} has no part for a campaign")
    page.write_text(_PART.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", before))


def _settled() -> Held:
    """When farewells that happen aside are over: the least of two seconds."""
    seen = []
    for _ in range(10):
        seen.append(Held.now())
        time.sleep(0.2)
    return min(seen, key=lambda held: (held.threads, held.descriptors))


def _platform_of(found: object) -> str:
    operation = found.operation  # type: ignore[attr-defined]
    return str(operation.key.platform_id)


def _verified(findings: list[str], fleet: Fleet) -> int:
    assert findings == [], findings
    with fleet.routes[0].ledger() as ledger:
        return ledger.position()


def _table(rows: dict[str, object], figures: Figures) -> str:
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())]
    lines += ["", "| what happened to the first process | operations |", "| --- | ---: |"]
    lines += [f"| {kind} | {count} |" for kind, count in sorted(figures.rounds.items())]
    lines += ["", "| how a process ended | times |", "| --- | ---: |"]
    lines += [f"| {ending} | {count} |" for ending, count in sorted(figures.endings.items())]
    return "\n".join(lines)
