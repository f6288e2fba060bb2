"""What must hold after a fault and after the recovery from it, read off servers and ledger, not off the product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dpone.adapters.runtime.lookup import all_operations
from dpone.domain.errors import ErrorCode
from dpone.domain.operation_events import StagingOpened
from tests.cli.sandbox import Ended
from tests.crash.evidence import known_tables, reads_again
from tests.integration.clickhouse_cluster.route import Route, points_of
from tests.servers.cluster import PASSWORDS

INCOMPLETE = ErrorCode.EVIDENCE_INCOMPLETE.value
UNFINISHED = {
    INCOMPLETE,
    ErrorCode.REPLICA_UNREACHABLE.value,
    ErrorCode.LEDGER_UNREACHABLE.value,
    ErrorCode.CONNECTION_REFUSED.value,
}
"""How a run may end that a fault of server or network stopped: nothing is claimed, the same command goes on."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the same command owes, told from the ledger alone before it is repeated."""

    run_id: str
    generation: int
    reads: bool

    @classmethod
    def of(cls, route: Route, run_id: str, generation: int) -> Expected:
        return cls(run_id, generation, reads_again(route.found(run_id)))


def check_ending(ended: Ended, codes: Sequence[str] | set[str]) -> None:
    """Success, or one of these codes with what to type next. Never a secret."""
    for password in (PASSWORDS.dpone, PASSWORDS.dpone_reader, PASSWORDS.source_reader):
        assert password not in ended.out + ended.err
    if ended.code == 0:
        assert ended.document["passed"] is True
        return
    assert ended.code in (1, 130, 143), ended
    assert ended.result["error_code"] in codes, ended
    assert ended.details.get("next"), "nobody is told what to type"
    assert ended.result["errors"], ended


def check_live(route: Route, *generations: int | None) -> None:
    """On every replica one of these generations is live, whole; None: no table."""
    assert set(route.live()) <= set(generations), route.live()


def check_finished(route: Route, expected: Expected, finished: Ended, records: Sequence[Sequence[str]]) -> None:
    """Complete and settled; the last process read the source only if it had to; the target changed hands once."""
    assert finished.code == 0, finished
    last = points_of(records[-1])
    opened = sum(point.startswith("read#") and point.endswith(":before") for point in last)
    assert opened == int(expected.reads), f"the source was read {opened} times"
    route.check_settled(expected.run_id, expected.generation)
    check_one_swap(records)
    check_tables(route, expected.run_id)


def check_one_swap(records: Sequence[Sequence[str]]) -> None:
    """What the target's name stood for on the first replica, over all processes: changed once, and never back."""
    seen = [line for lines in records for line in lines if line.startswith("live ")]
    changes = [after for before, after in pairwise(["", *seen]) if before != after]
    assert changes == list(dict.fromkeys(seen)), f"a table came back: {changes}"
    assert len(changes) <= 2, changes
    assert "live None" not in changes[1:], changes


def check_tables(route: Route, run_id: str) -> int:
    """Every table is one that the ledger lists, or an abandoned candidate that an operation of this target minted.

    A stale process may create its own candidate late: harmless, and what ``ops sweep`` is for. Returns how many.
    """
    found = route.found(run_id)
    assert found is not None
    listed, left = known_tables(found), set[str]()
    for names in route.names():
        unlisted = names - listed
        minted = _minted(route) if unlisted else set()
        assert unlisted <= minted, f"tables that the ledger does not list: {unlisted - minted}"
        left |= unlisted
    return len(left)


def _minted(route: Route) -> set[str]:
    """Every candidate that the ledger says was to be created for this target."""
    with route.ledger() as ledger:
        return {
            event.candidate
            for one in all_operations(ledger)
            if one.operation.key is not None and one.operation.key.database == route.database
            for event in one.events
            if isinstance(event, StagingOpened)
        }
