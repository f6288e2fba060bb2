"""From a manifest's path to its processes: the door of this package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...domain.configuration import Process
from ...domain.errors import DponeError, ErrorCode
from . import yaml
from .build import Label, process
from .checks import dependency_problems, duplicate_problems
from .credentials import credentials
from .files import decode, read_bytes, refused, shown
from .inherit import inherit
from .yaml import Located, Problem

FRAGMENT_BYTES_MAX: Final = 1024 * 1024  # of all fragments together


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest's processes, all of them valid, in the order they were written.

    ``sha256`` is the hexadecimal digest of the file; of a folder flow, over the digests of the file and its fragments.
    """

    path: Path
    kind: str
    sha256: str
    processes: tuple[Process, ...]

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
        from .fields import suggestion

        hint = suggestion(selector, by_selector)
        raise DponeError(
            ErrorCode.SELECTOR_UNKNOWN,
            f"No process has the selector {shown(selector)[:100]!r}{hint}. There are: {_listed(by_selector)}.",
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
    reading = _Reading(Path(path))
    found = reading.processes()
    reading.stop_on_problems()
    reading.problems += [*duplicate_problems(found), *dependency_problems(found)]
    reading.stop_on_problems()
    _refuse_incremental(found)
    return Manifest(
        path=Path(path),
        kind=reading.kind,
        sha256=reading.sha256(),
        processes=tuple(process(item.fields, reading.folder, item.label) for item in found),
    )


@dataclass(frozen=True, slots=True)
class Found:
    """A process's checked fields, where they were written, and its label in a batch."""

    fields: dict[str, Any]
    located: Located
    label: Label | None

    @property
    def selector(self) -> str:
        """What picks it from its manifest."""
        return f"{self.label.schema}.{self.label.name}" if self.label else str(self.fields["name"])


class _Reading:
    """One manifest while it is read: its problems, and the digests of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.absolute().parent
        self.kind = ""
        self.problems: list[Problem] = []
        self.digests: list[str] = []

    def sha256(self) -> str:
        if len(self.digests) == 1:
            return self.digests[0]
        return hashlib.sha256("\n".join(self.digests).encode()).hexdigest()

    def stop_on_problems(self) -> None:
        if self.problems:
            errors = tuple(str(problem) for problem in sorted(set(self.problems))[: yaml.ERRORS_MAX])
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise refused(errors[0] + more, errors)

    def processes(self) -> list[Found]:
        from .grammar import BATCH, FLOW, FRAGMENT

        name = shown(self.path.name or self.path)
        document = self._document(read_bytes(self.path, name), name)
        self.kind = self._kind(document)
        match self.kind:
            case "dpone.batch.v1":
                return self._batch(document, BATCH)
            case "dpone.flow.v1":
                return self._flow(document, FLOW)
            case _:
                what = f"kind: {FRAGMENT} is read only by the flow that lists it; name the flow's file"
                self.problems.append(Problem(document.place(("kind",)), what))
                return []

    def _document(self, content: bytes, name: str) -> Located:
        self.digests.append(hashlib.sha256(content).hexdigest())
        text = decode(content, name)
        try:
            document = yaml.parse(text, name)
        except yaml.Unreadable as unreadable:
            self.problems += unreadable.problems
            self.stop_on_problems()
            raise
        self.problems += credentials(text, document, name)
        self.stop_on_problems()
        return document

    def _kind(self, document: Located) -> str:
        from .fields import suggestion
        from .grammar import KINDS

        value = document.value
        kind = value.get("kind") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind in KINDS:
            return kind
        hint = suggestion(kind, KINDS) if isinstance(kind, str) else ""
        what = f"kind: must be one of {', '.join(KINDS)}{hint}"
        self.problems.append(Problem(document.place(("kind",)), what))
        self.stop_on_problems()
        return ""

    def _load(self, document: Located, shape: Any) -> dict[str, Any] | None:
        """The document's checked fields; None when it has problems, which are noted."""
        from marshmallow import ValidationError

        try:
            loaded: dict[str, Any] = shape.load(document.value)
        except ValidationError as error:
            self.problems += _problems(error.normalized_messages(), document, ())
            return None
        return loaded

    def _batch(self, document: Located, kind: str) -> list[Found]:
        from .grammar import KINDS
        from .process_shapes import ProcessShape

        if self._load(document, KINDS[kind]()) is None:
            return []
        defaults = document.at("defaults")
        if "quality" in document.value:
            upper = {"quality": document.value["quality"]}
            defaults = inherit(defaults, Located(upper, document.places))
        shape = ProcessShape()
        found = []
        for label, entry in _entries(document):
            located = _of_batch(defaults, entry, label)
            self.problems += _batch_problems(located)
            if (fields := self._load(located, shape)) is not None:
                fields["sink"]["table"].setdefault("name", label.name)
                found.append(Found(fields, located, label))
        return found

    def _flow(self, document: Located, kind: str) -> list[Found]:
        from .grammar import KINDS

        flow = self._load(document, KINDS[kind]())
        if flow is None:
            return []
        found = self._listed(document, flow)
        room = FRAGMENT_BYTES_MAX
        for index, fragment in enumerate(flow.get("fragments", ())):
            if (content := self._fragment(document, index, fragment)) is None:
                continue
            room -= len(content)
            if room < 0:
                what = f"the fragments are longer than {FRAGMENT_BYTES_MAX} bytes together"
                self.problems.append(Problem(document.place(("fragments", index)), what))
                break
            found += self._of_fragment(self._document(content, shown(fragment)))
        return found

    def _listed(self, document: Located, flow: Mapping[str, Any]) -> list[Found]:
        found = []
        for index, fields in enumerate(flow.get("processes", ())):
            located = document.at("processes").at(index)
            table = fields["sink"]["table"]
            if "name" not in table:
                if "table" in fields["source"]:
                    table["name"] = fields["source"]["table"]["name"]
                else:
                    what = "sink.table.name: required, since the source is no table whose name it could take"
                    self.problems.append(Problem(located.place(("sink", "table")), what))
            found.append(Found(fields, located, None))
        return found

    def _fragment(self, document: Located, index: int, written: str) -> bytes | None:
        path = self.folder / written
        try:
            inside = path.resolve().is_relative_to(self.folder.resolve())
        except (OSError, RuntimeError, ValueError):
            inside = False
        if not inside or Path(written).is_absolute():
            what = f"fragments[{index}]: must be a relative path inside the flow's folder, also behind symbolic links"
            self.problems.append(Problem(document.place(("fragments", index)), what))
            return None
        return read_bytes(path, shown(written))

    def _of_fragment(self, document: Located) -> list[Found]:
        from .grammar import FRAGMENT, KINDS

        if self._kind(document) != FRAGMENT:
            self.problems.append(Problem(document.place(("kind",)), f"kind: a fragment's kind must be {FRAGMENT}"))
            return []
        fragment = self._load(document, KINDS[FRAGMENT]())
        return [] if fragment is None else self._listed(document, fragment)


def _entries(document: Located) -> Iterable[tuple[Label, Located]]:
    schemas = document.at("schemas")
    for schema in schemas.value:
        tables = schemas.at(schema).at("tables")
        for index, entry in enumerate(tables.value):
            name = entry if isinstance(entry, str) else entry["name"]
            yield Label(schema, name), tables.at(index)


def _of_batch(defaults: Located, entry: Located, label: Label) -> Located:
    """A table's process: the entry over the defaults, named by them."""
    own = {key: value for key, value in entry.value.items() if key != "name"} if isinstance(entry.value, dict) else {}
    located = inherit(defaults, Located(own, entry.places, entry.root))
    places = {**located.places}
    places.setdefault(("name",), defaults.place(()))
    source = located.value.get("source")
    if (
        isinstance(source, dict)
        and source.get("type") in ("clickhouse", "postgres", "sqlite")
        and "query" not in source
    ):
        table = {"schema": label.schema, "name": label.name}
        source = {"table": table, **source}
    return Located({**located.value, "source": source} if "source" in located.value else located.value, places)


def _batch_problems(located: Located) -> Iterable[Problem]:
    if ("source", "table") in located.places:
        what = "source.table: in a batch, schemas name the tables; remove it"
        yield Problem(located.place(("source", "table")), what)


def _problems(messages: Any, document: Located, path: tuple[str | int, ...]) -> Iterable[Problem]:
    """marshmallow's nested messages, each with its place."""
    if isinstance(messages, dict):
        for key, below in messages.items():
            yield from _problems(below, document, path if key == "_schema" else (*path, key))
        return
    name = _dotted(path)
    for message in messages:
        yield Problem(document.place(path), f"{name}: {message}" if name else str(message))


def _dotted(path: tuple[str | int, ...]) -> str:
    name = ""
    for step in path:
        name += f"[{step}]" if isinstance(step, int) else f".{shown(step)[:60]}" if name else shown(step)[:60]
    return name


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
