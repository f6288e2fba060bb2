"""The platforms that answer to a ledger, and how they are told that it was moved or restored.

A platform says which ledger it answers to, and at which epoch, in a marker: a file in the embedded folder, or a table
on each replica of a cluster. The event that records it stands in the platform's stream, in the ledger itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ...domain.errors import DponeError, ErrorCode, LedgerFailed
from ...domain.identity import platform_stream
from ...domain.platform import CLUSTER, EMBEDDED, Platform
from ...domain.platform_events import EpochRaised
from ...domain.ports import StreamAppend
from .provisioning import Marker, embedded_folder, read_marker, storage_problem
from .settings import Settings

if TYPE_CHECKING:
    from ...ledger.store import EventLedger
    from ..cluster.session import Endpoint
    from ..connections.connection import Connection

_FILE = "platform.json"


@dataclass(frozen=True, slots=True)
class PlatformMarkers:
    """Implements :class:`dpone.ledger.migrating.Markers` for the platforms that a ledger knows.

    ``reviewed_by`` is who decided on a restore; None for a move. ``now`` gives the time that is shown.
    """

    settings: Settings
    platforms: tuple[Platform, ...]
    connection: Connection | None
    now: Callable[[], str]
    reviewed_by: str | None = None

    def elsewhere(self) -> tuple[str, ...]:
        """Embedded platforms whose folder is not in this home: they must be told from theirs, by the same command."""
        here = self._file()
        known = None if here is None else here.platform_id
        return tuple(one.platform_id for one in self.platforms if one.kind == EMBEDDED and one.platform_id != known)

    def epoch(self, ledger_id: str) -> int:
        """The highest epoch that a marker of this ledger names; 0: there is none. Raises DponeError."""
        from ..authority.marker import read_markers
        from ..authority.topology import session_on

        here = self._file()
        found = [here.epoch] if here is not None and here.ledger_id == ledger_id else []
        for connection, endpoints in self._clusters():
            for endpoint in endpoints:
                with session_on(connection, endpoint) as session:
                    found += [held.epoch for held in read_markers(session) if held.ledger_id == ledger_id]
        return max(found, default=0)

    def record(self, ledger: EventLedger, epoch: int, reason: str) -> int:
        """Append EpochRaised to every platform's stream that does not have it."""
        from ..authority.memory import all_platforms

        late = [one for one in all_platforms(ledger) if one.epoch < epoch]
        appends = [
            StreamAppend(
                platform_stream(one.platform_id),
                one.version,
                (
                    EpochRaised(
                        at=self.now(),
                        ledger_id=ledger.ledger_id,
                        epoch=epoch,
                        reason=reason,
                        reviewed_by=self.reviewed_by,
                        by=self.settings.by,
                    ),
                ),
            )
            for one in late
        ]
        if appends:
            ledger.append(appends)
        return len(appends)

    def raise_epoch(self, ledger_id: str, epoch: int) -> int:
        """Let the marker in this home, and on every replica, name ``epoch``."""
        from ..authority.marker import raise_epoch

        changed = self._raise_file(ledger_id, epoch)
        for connection, endpoints in self._clusters():
            changed += raise_epoch(connection, endpoints, ledger_id, epoch, self.now())
        return changed

    def _file(self) -> Marker | None:
        return read_marker(embedded_folder(self.settings.home))

    def _raise_file(self, ledger_id: str, epoch: int) -> int:
        here = self._file()
        if here is None or here.ledger_id != ledger_id or here.epoch >= epoch:
            return 0
        write_over(embedded_folder(self.settings.home), replace(here, epoch=epoch))
        return 1

    def _clusters(self) -> Iterator[tuple[Connection, tuple[Endpoint, ...]]]:
        from ..authority.topology import discover, endpoint_of

        for one in self.platforms:
            if one.kind != CLUSTER or one.cluster is None:
                continue
            if self.connection is None:
                raise DponeError(
                    ErrorCode.REQUEST_INVALID,
                    f"The cluster {one.cluster} answers to this ledger, and must be told on every replica.",
                    next="Add --connection REF, a connection to any of its servers.",
                )
            replicas = one.replicas or discover(self.connection, one.cluster).replicas
            yield self.connection, tuple(endpoint_of(replica) for replica in replicas)


def write_over(folder: Path, marker: Marker) -> None:
    """Put another marker in place of the one that is there: complete or not at all, and on disk. Raises DponeError."""
    draft = folder / f".{_FILE}.{os.getpid()}.{uuid4().hex}"
    try:
        with draft.open("x") as file:
            file.write(json.dumps(asdict(marker)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / _FILE)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_problem(error) from error
    if read_marker(folder) != marker:
        raise LedgerFailed(ErrorCode.LEDGER_CORRUPT, "The embedded folder's marker changed while it was written.")
