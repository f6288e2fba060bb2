"""What an installation can and cannot do here, found out by trying it. Every finding comes with what to do about it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from ... import __version__
from ...domain.configuration import EMBEDDED, Process
from ...domain.errors import DponeError
from .provisioning import embedded_folder, read_marker
from .settings import Settings

_ENGINE = "chdb-core"
_PROBE_BYTES_FREE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: ``ok``, ``warning`` or ``problem``; ``fix`` is what to do, None when nothing is."""

    check: str
    status: str
    text: str
    fix: str | None = None


def diagnose_connections(processes: Iterable[Process], settings: Settings) -> tuple[Finding, ...]:
    """Whether every connection that these processes name is bound, and a server lets us in. Raises nothing."""
    named: dict[str, str] = {}
    for process in processes:
        if process.source.connection_ref is not None:
            named.setdefault(process.source.connection_ref, process.source.type.value)
        if process.sink.connection_ref != EMBEDDED:
            named.setdefault(process.sink.connection_ref, "clickhouse")
    return tuple(_connection(reference, kind, settings) for reference, kind in named.items())


def _connection(reference: str, kind: str, settings: Settings) -> Finding:
    try:
        driver = import_module(f"..connections.{kind}", __package__)
        with driver.opened(settings.connection(reference)):
            return Finding("connection", "ok", f"{reference}: a {kind} server answers")
    except DponeError as error:
        return Finding("connection", "problem", error.what, error.next)


def diagnose_installation(settings: Settings) -> tuple[Finding, ...]:
    """All checks, in the order in which a run would meet them. Raises nothing."""
    checks: tuple[Callable[[Settings], Iterator[Finding]], ...] = (_versions, _home, _ledger, _engine, _reader)
    return tuple(finding for check in checks for finding in check(settings))


def _versions(settings: Settings) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("version", "ok", f"dpone-replay {__version__} on Python {python}, {os.uname().machine}")
    if sys.platform != "linux":
        yield Finding("platform", "problem", f"{sys.platform}: the reader's process needs Linux.", "Use Linux.")


def _home(settings: Settings) -> Iterator[Finding]:
    home = _nearest_existing(settings.home)
    try:
        with tempfile.TemporaryFile(dir=home):
            pass
        free = os.statvfs(home)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        yield Finding("home", "problem", f"The home cannot be written: {reason}.", "Set DPONE_HOME to another folder.")
        return
    free_bytes = free.f_bavail * free.f_frsize
    if free_bytes < _PROBE_BYTES_FREE:
        yield Finding("home", "problem", f"{free_bytes / 1e6:,.0f} MB are free at the home.", "Free some space.")
        return
    yield Finding("home", "ok", f"writable, {free_bytes / 1e9:,.1f} GB free")


def _ledger(settings: Settings) -> Iterator[Finding]:
    from ...ledger.store import open_ledger
    from ..connections.sql import connect_by

    shared = not settings.ledger_url.startswith("sqlite:")
    try:
        marker = None if shared else read_marker(embedded_folder(settings.home))
        if marker is None and not shared:
            yield Finding("ledger", "ok", "not there yet: the first run creates it")
            return
        with open_ledger(settings.ledger_url, create=False, connect=connect_by(settings)) as ledger:
            belongs = marker is None or ledger.ledger_id == marker.ledger_id
            events = ledger.position()
    except DponeError as error:
        yield Finding("ledger", "problem", error.what, error.next)
        return
    if not belongs:
        fix = "Name the ledger that belongs to this home with --ledger."
        yield Finding("ledger", "problem", "The home's tables belong to another ledger.", fix)
        return
    yield Finding("ledger", "ok", f"{events:,} events; {'shared' if shared else 'it belongs to this home'}")


def _engine(settings: Settings) -> Iterator[Finding]:
    if find_spec("chdb") is None or find_spec("pyarrow") is None:
        yield Finding("engine", "problem", "not installed", "pip install 'dpone-replay[embedded]'")
        return
    try:
        found = version(_ENGINE)
    except PackageNotFoundError:
        found = "of unknown version"
    yield Finding("engine", "ok", f"{_ENGINE} {found}")


def _reader(settings: Settings) -> Iterator[Finding]:
    """Start a worker, signal it, reap it: what a container's policy may forbid."""
    from ..reader.process import ProcessReader

    try:
        reaped = ProcessReader(Path(tempfile.gettempdir())).try_out()
    except DponeError as error:
        fix = "Allow this user to start processes (ulimit -u, the container's process limit)."
        yield Finding("reader", "problem", error.what, fix)
        return
    if reaped:
        yield Finding("reader", "ok", "its process can be started, signalled and reaped here")
    else:
        fix = "Allow signals between processes of this user."
        yield Finding("reader", "problem", "Its process could not be ended.", fix)


def _nearest_existing(folder: Path) -> Path:
    return next(part for part in (folder, *folder.parents) if part.exists())
