"""From a manifest's path to its processes: the door of this package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from ...domain.configuration import Process
from ...domain.errors import DponeError, ErrorCode
from .build import process
from .checks import dependency_problems, duplicate_problems
from .fields import suggestion
from .files import shown
from .reading import Found, Reading
from .yaml import ERRORS_MAX


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest's processes, all of them valid, in the order they were written.

    ``sha256`` is the hexadecimal digest of the file; of a folder flow, over the digests of the file and its fragments.
    ``flow_id`` is a flow's ``metadata.id``, None for a batch.
    """

    path: Path
    kind: str
    sha256: str
    processes: tuple[Process, ...]
    flow_id: str | None = None

    def select(self, selector: str | None) -> Process:
        """The process that a selector names, or the only one.

        Raises DponeError: SELECTOR_REQUIRED, listing all; SELECTOR_UNKNOWN, with the nearest.
        """
        by_selector = {process.selector: process for process in self.processes}
        if selector is None and len(self.processes) == 1:
            return self.processes[0]
        if selector is None:
            raise DponeError(
                ErrorCode.SELECTOR_REQUIRED,
                f"The manifest holds {len(self.processes)} processes; choose one: {_listed(by_selector)}.",
                next=f"Repeat the command with --selector {next(iter(by_selector))}, or with --all.",
            )
        if selector in by_selector:
            return by_selector[selector]
        hint = suggestion(selector, by_selector) or "."
        raise DponeError(
            ErrorCode.SELECTOR_UNKNOWN,
            f"No process has the selector {shown(selector)[:100]!r}{hint} There are: {_listed(by_selector)}.",
            next="Repeat the command with one of them.",
        )

    def in_dependency_order(self) -> tuple[Process, ...]:
        """All processes, each after those it depends on; otherwise as written."""
        from graphlib import TopologicalSorter

        by_selector = {process.selector: process for process in self.processes}
        graph = {process.selector: process.depends_on for process in self.processes}
        return tuple(by_selector[selector] for selector in TopologicalSorter(graph).static_order())


def load_manifest(path: Path) -> Manifest:
    """Read and check a manifest; touches nothing else than it and its fragments.

    Raises DponeError: MANIFEST_INVALID with every problem as ``file:line:column: what``; EVIDENCE_UNSUPPORTED (exit
    code 2) for a strategy that is understood but not there.
    """
    reading = Reading(Path(path))
    found = reading.processes()
    reading.stop_on_problems()
    reading.problems += islice(chain(duplicate_problems(found), dependency_problems(found)), ERRORS_MAX)
    reading.stop_on_problems()
    _refuse_incremental(found)
    return Manifest(
        path=Path(path),
        kind=reading.kind,
        sha256=reading.sha256(),
        processes=tuple(process(item.fields, reading.folder, item.label) for item in found),
        flow_id=reading.flow_id,
    )


def _refuse_incremental(found: Iterable[Found]) -> None:
    for item in found:
        mode = item.fields["sink"].get("strategy", {}).get("mode", "full_refresh")
        if mode != "full_refresh":
            place = item.located.place(("sink", "strategy", "mode"))
            what = f"{place}: sink.strategy.mode: an incremental load is not carried; only full_refresh is"
            raise DponeError(
                ErrorCode.EVIDENCE_UNSUPPORTED,
                what,
                safe="Nothing was read, created or changed.",
                next="Write mode: full_refresh, or load this table with another tool.",
                exit_code=2,
            )


def _listed(selectors: Iterable[str]) -> str:
    names = list(selectors)
    rest = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + rest
