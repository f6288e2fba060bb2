"""The phases of a run on a cluster, each found by the text of a request that belongs to no other."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Final

from .relay import When


@dataclass(frozen=True, slots=True)
class Phase:
    """``relay``: whose request it is. ``capsule``: whether the capsule is certainly in the ledger by then."""

    name: str
    relay: str
    when: When
    capsule: bool = False


def _phase(name: str, relay: str, text: bytes, *, capsule: bool = False) -> Phase:
    pattern = re.compile(text, re.DOTALL)
    return Phase(name, relay, lambda data: pattern.search(data) is not None, capsule)


def appends(event: str) -> When:
    """A Keeper transaction that stores this event: entries are deflated, and begin as zlib at its fastest does."""
    text = event.encode()

    def holds(data: bytes) -> bool:
        starts = (found.start() for found in re.finditer(re.escape(b"\x78\x01"), data))
        return any(text in _inflated(data[start:]) for start in starts)

    return holds


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data)
    except zlib.error:
        return b""


_CANDIDATE: Final = rb"`__dpone_records_[0-9a-f]{32}_c\d+_\d+`"
_LIVE: Final = rb"SELECT[^;]{0,4000}count\(\)[^;]{0,4000}FROM `\w+`\.`records`"

STATEMENTS: Final = (
    _phase("marker read", "replica 2", rb"FROM dpone_authority\.platform"),
    _phase("target inspected", "replica 2", rb"SELECT is_readonly OR is_session_expired"),
    _phase("swap probed", "replica 1", rb"RENAME TABLE [^;]*__dpone_no_such_table_a"),
    _phase("candidate created", "replica 1", rb"CREATE TABLE `\w+`\." + _CANDIDATE + rb" ON CLUSTER"),
    _phase("source read", "source", rb"FROM `?\w+`?\.`?source`?"),
    _phase("candidate filled", "replica 1", rb"INSERT INTO `\w+`\." + _CANDIDATE),
    _phase("replicas synchronised", "replica 2", rb"SYSTEM SYNC REPLICA"),
    _phase("replicas compared", "replica 2", rb"AS held_rows"),
    _phase("candidate observed", "replica 1", rb"readonly.{0,4000}FROM `\w+`\." + _CANDIDATE),
    _phase("swap sent", "replica 1", rb"RENAME TABLE `\w+`\." + _CANDIDATE + rb" TO [^;]* ON CLUSTER", capsule=True),
    _phase("target observed", "replica 1", rb"readonly.{0,4000}" + _LIVE, capsule=True),
)
APPENDS: Final = tuple(
    Phase(f"{event} appended", "keeper", appends(event), capsule)
    for event, capsule in (
        ("OperationAdmitted", False),
        ("StagingOpened", False),
        ("CandidateStaged", False),
        ("StagedObserved", False),
        ("GatesEvaluated", False),
        ("CapsuleWritten", False),
        ("PublicationDispatched", True),
        ("CommitProven", True),
        ("TargetPending", True),
        ("TargetObserved", True),
        ("ReceiptAccepted", True),
        ("ReaderGuardReleased", True),
        ("OperationCompleted", True),
    )
)
PHASES: Final = {phase.name: phase for phase in (*STATEMENTS, *APPENDS)}
