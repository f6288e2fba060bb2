"""What can be seen from outside after a process ended: the ledger, the tables, and the records of both processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpone.adapters.runtime.lookup import Found, all_operations
from dpone.domain.history import illegality
from dpone.domain.operation import State
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger
from dpone.ledger.verify import verify_ledger
from tests.cli.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Record:
    """What one recorded process did."""

    lines: tuple[str, ...]

    @property
    def source_opens(self) -> int:
        return sum(line.startswith("point read#") and line.endswith(":before") for line in self.lines)

    @property
    def swaps_sent(self) -> int:
        return sum(line.startswith("point swap#") and line.endswith(":before") for line in self.lines)

    @property
    def live(self) -> list[str]:
        """What the target's name stood for: at the first look, then after each change."""
        return [line.removeprefix("live ") for line in self.lines if line.startswith("live ")]


def record_of(path: Path) -> Record:
    """The record as far as it got."""
    return Record(tuple(path.read_text().splitlines()) if path.exists() else ())


def operation_of(sandbox: Sandbox, run_id: str) -> Found | None:
    """The run's operation from the ledger; None when it was never admitted."""
    if not sandbox.ledger.exists():
        return None
    ledger = open_ledger(sqlite_url(sandbox.ledger), create=False)
    try:
        for found in all_operations(ledger):
            if found.operation.key is not None and found.operation.key.run_id == run_id:
                return found
    finally:
        ledger.close()
    return None


def ledger_findings(sandbox: Sandbox) -> list[str]:
    """What ``dpone audit verify`` would find."""
    ledger = open_ledger(sqlite_url(sandbox.ledger), create=False)
    try:
        return [str(finding) for finding in verify_ledger(ledger, illegality).findings]
    finally:
        ledger.close()


def reads_again(found: Found | None) -> bool:
    """Whether the same command has to read the source: only when no complete, unspent staging is recorded."""
    if found is None:
        return True
    operation = found.operation
    if operation.state is State.FAILED:
        return True
    if operation.state is State.COMPLETE:
        return not operation.process.sink.durable
    return operation.generation is None or not operation.generation.is_staged


def known_tables(found: Found) -> set[str]:
    """The target, the predecessors that are kept, and what is listed for dropping."""
    slot = found.slot
    kept = {name for one in slot.kept for name in one.names.values()}
    return {slot.target.table if slot.target is not None and slot.live is not None else "", *kept, *slot.retirements}
