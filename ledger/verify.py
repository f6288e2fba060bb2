"""Recompute everything that a ledger holds, trusting nothing: from the store's raw rows, not through reads.

A finding names one stored event by stream, version and ledger position. Checking goes on after a finding, each event
against what the event before it claims, so that one changed byte is one event's fault and not its successors'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from ..domain.errors import IllegalTransition
from ..domain.ports import Recorded
from .chain import GENESIS, ChainBroken, check_previous
from .mapper import Mapper
from .recorder import RawRow
from .store import EventLedger, stored_event

Legality = Callable[[UUID, Sequence[Recorded]], str | None]
"""Says what is illegal about a stream's history, or None. Called for streams whose chains hold."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold.

    ``stream`` and ``version`` are text as stored, shortened, and empty where the fault is the store's; ``position`` is
    the place in ledger order, None where the fault has none.
    """

    stream: str
    version: str
    position: int | None
    what: str

    def __str__(self) -> str:
        if not self.stream:
            return self.what
        place = "" if self.position is None else f" (position {self.position})"
        return f"event {self.version} of stream {self.stream}{place}: {self.what}"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was checked and what was found. Nothing found means that the ledger holds."""

    events: int
    streams: int
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.findings


@dataclass(slots=True)
class _Stream:
    """One stream's chain as far as it was checked."""

    version: int = 0
    digest: str | None = GENESIS  # None: unknown, because the event before could not be parsed
    intact: bool = True
    recorded: list[Recorded] = field(default_factory=list)


def verify_ledger(ledger: EventLedger, legality: Legality | None = None) -> VerifyReport:
    """Check the store, and every event's bytes, digest, place in its chain, topic and shape; then every history.

    ``legality`` folds a stream's history and says what is illegal in it. Raises LedgerFailed when the store cannot be
    read at all.
    """
    recorder = ledger.recorder
    check = _Check(ledger.mapper, keep=legality is not None, contiguous=recorder.contiguous)
    check.findings += [Finding("", "", None, what) for what in recorder.self_check()]
    check.rows(ledger.raw_rows())
    if legality is not None:
        check.histories(legality)
    return VerifyReport(check.events, len(check.streams), tuple(check.findings))


class _Check:
    def __init__(self, mapper: Mapper, *, keep: bool, contiguous: bool) -> None:
        self.mapper = mapper
        self.keep = keep
        self.contiguous = contiguous
        self.events = 0
        self.streams: dict[UUID, _Stream] = {}
        self.findings: list[Finding] = []

    def rows(self, rows: Iterable[RawRow]) -> None:
        last = 0
        for row in rows:
            self.events += 1
            if self.contiguous and row.position != last + 1:
                self.findings.append(_finding(row, f"position {last + 1} is missing before it"))
            last = row.position
            self._row(row)

    def histories(self, legality: Legality) -> None:
        for stream_id, stream in self.streams.items():
            if not stream.intact:
                continue
            what = _judge(legality, stream_id, stream.recorded)
            if what is not None:
                self.findings.append(Finding(str(stream_id), str(stream.version), None, what))

    def _row(self, row: RawRow) -> None:
        try:
            stored = stored_event(row)
        except ChainBroken as broken:
            self.findings.append(_finding(row, f"{broken}"))
            return
        stream_id = UUID(str(stored.originator_id))
        stream = self.streams.setdefault(stream_id, _Stream())
        for what in self._event(stream_id, stream, row):
            stream.intact = False
            self.findings.append(_finding(row, what))

    def _event(self, stream_id: UUID, stream: _Stream, row: RawRow) -> Iterable[str]:
        stored = stored_event(row)
        if stored.originator_version != stream.version + 1:
            yield f"version {stream.version + 1} should stand here"
        stream.version = stored.originator_version
        previous, stream.digest = stream.digest, None
        try:
            link = self.mapper.check(stream_id, stored)
            stream.digest = link.digest
            if previous is not None:
                check_previous(link, previous)
            recorded = self.mapper.decode(stream_id, stored, link)
        except ChainBroken as broken:
            yield f"{broken}"
            return
        if self.keep:
            stream.recorded.append(recorded)


def _judge(legality: Legality, stream: UUID, recorded: Sequence[Recorded]) -> str | None:
    try:
        return legality(stream, recorded)
    except IllegalTransition as illegal:
        return illegal.what


def _finding(row: RawRow, what: str) -> Finding:
    stream = row.originator_id if isinstance(row.originator_id, str) else "?"
    version = row.originator_version if isinstance(row.originator_version, int) else "?"
    return Finding(_readable(stream), str(version), row.position, what)


def _readable(stream: str) -> str:
    try:
        return str(UUID(hex=stream))
    except ValueError:
        return ascii(stream[:40])
