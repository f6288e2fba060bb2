"""The embedded platform provisions itself: an id of its own, and the ledger that it answers to, in one marker file.

A folder that names another, an older or an absent ledger is refused: a lost ledger cannot silently start afresh and
publish again over tables that it does not remember.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ...domain import platform_events as p
from ...domain.codec import DecodeError, decode, parse_strict
from ...domain.errors import AppendConflict, DponeError, ErrorCode, LedgerFailed, LedgerMissing
from ...domain.identity import platform_stream
from ...domain.platform import EMBEDDED
from ...domain.ports import Clock, StreamAppend

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

REPLICA = "embedded"
_MARKER = "platform.json"
_MARKER_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """What stands in the embedded folder: its platform id, and the ledger it belongs to, at which epoch."""

    format: int
    platform_id: str
    ledger_id: str
    epoch: int


def embedded_folder(home: Path) -> Path:
    """Where the embedded platform lives under the home."""
    return home / "embedded"


def open_provisioned(home: Path, ledger_url: str, clock: Clock) -> tuple[EventLedger, Marker]:
    """Open the ledger and make sure that the embedded folder and it belong together; create both on first use.

    Raises LedgerFailed (CORRUPT: they do not belong together, or the ledger is gone) and what opening a ledger raises.
    """
    from ...ledger.store import open_ledger

    folder = embedded_folder(home)
    marker = read_marker(folder)
    if marker is None:
        _make_folder(folder)
    try:
        ledger = open_ledger(ledger_url, create=marker is None)
    except LedgerMissing as error:
        if marker is None:
            raise
        raise _ledger_gone() from error
    try:
        if marker is None:
            marker = _write_marker(folder, Marker(_MARKER_FORMAT, str(uuid4()), ledger.ledger_id, ledger.epoch))
        _check(marker, ledger.ledger_id, ledger.epoch)
        _record(ledger, marker, clock)
    except BaseException:
        ledger.close()
        raise
    return ledger, marker


def read_marker(folder: Path) -> Marker | None:
    """The folder's marker, or None when it has none. Raises LedgerFailed for one that cannot be understood."""
    try:
        data = (folder / _MARKER).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(error) from error
    try:
        return decode(Marker, parse_strict(data))
    except DecodeError as error:
        raise _corrupt(f"The marker {_MARKER} in the embedded folder cannot be understood.") from error


def _write_marker(folder: Path, marker: Marker) -> Marker:
    """Write the marker unless another process was first; the one that stands there wins."""
    draft = folder / f".{_MARKER}.{os.getpid()}.{uuid4().hex}"
    try:
        with draft.open("x") as file:
            file.write(json.dumps(asdict(marker)))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, folder / _MARKER)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        _sync_folder(folder)
    except OSError as error:
        raise storage_problem(error) from error
    written = read_marker(folder)
    if written is None:
        raise _corrupt(f"The marker {_MARKER} vanished while it was written.")
    return written


def _record(ledger: EventLedger, marker: Marker, clock: Clock) -> None:
    stream = platform_stream(marker.platform_id)
    if ledger.read(stream):
        return
    provisioned = p.PlatformProvisioned(
        at=clock.now(),
        platform_id=marker.platform_id,
        kind=EMBEDDED,
        ledger_id=marker.ledger_id,
        epoch=marker.epoch,
        cluster=None,
        databases=(),
    )
    itself = p.AdmittedReplica(
        name=REPLICA, host=None, port=None, version="", macros={}, shard_number=1, replica_number=1
    )
    admitted = p.InventoryAdmitted(at=clock.now(), replicas=(itself,), internal_replication=EMBEDDED)
    try:
        ledger.append([StreamAppend(stream, 0, (provisioned, admitted))])
    except AppendConflict:
        return  # another process recorded the same


def _check(marker: Marker, ledger_id: str, epoch: int) -> None:
    if marker.format != _MARKER_FORMAT:
        raise LedgerFailed(
            ErrorCode.LEDGER_TOO_NEW,
            "The embedded folder was written by a newer release.",
            next="Use that release or a later one.",
        )
    if marker.ledger_id != ledger_id:
        raise _corrupt("The embedded tables belong to another ledger than the one that was opened.")
    if marker.epoch > epoch:
        raise _corrupt(
            "The ledger that was opened was moved, or replaced by a restored one: the embedded tables answer to a "
            "later epoch of it."
        )
    if marker.epoch < epoch:
        raise _corrupt("The embedded tables belong to an earlier epoch of this ledger than the one that was opened.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise storage_problem(error) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_problem(error: OSError) -> DponeError:
    """An operating-system error under the home, as a sentence."""
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DponeError(
            ErrorCode.STORAGE_FULL,
            "The disk that holds DPONE_HOME is full.",
            safe="Nothing was published.",
            next="Free some space, then repeat the same command.",
        )
    reason = os.strerror(error.errno) if error.errno else "unknown reason"
    return DponeError(
        ErrorCode.REQUEST_INVALID,
        f"DPONE_HOME cannot be written: {reason.lower()}.",
        next="Set DPONE_HOME to a folder that this user may write.",
    )


def _ledger_gone() -> LedgerFailed:
    return _corrupt("The ledger is gone, though the embedded tables in this home were published by it.")


def _corrupt(what: str) -> LedgerFailed:
    return LedgerFailed(
        ErrorCode.LEDGER_CORRUPT,
        what,
        safe="Nothing was read or changed; no table was touched and no ledger was created.",
        next="Put the ledger that belongs to this home back, or name it with --ledger.",
    )


def _unreadable(error: OSError) -> DponeError:
    reason = os.strerror(error.errno) if error.errno else "unknown reason"
    return DponeError(
        ErrorCode.REQUEST_INVALID,
        f"The embedded folder under DPONE_HOME cannot be read: {reason.lower()}.",
        next="Set DPONE_HOME to a folder that this user may read and write.",
    )
