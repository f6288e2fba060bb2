"""Reading one manifest, and a flow's fragments: from files to processes' checked fields, with every problem's place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from marshmallow import ValidationError

from . import grammar, yaml
from .build import Label
from .credentials import credentials
from .fields import suggestion
from .files import decode, read_bytes, refused, shown
from .inherit import inherit
from .process_shapes import ProcessShape, SinkTableShape
from .yaml import Located, Place, Problem

FRAGMENT_BYTES_MAX: Final = 1024 * 1024  # of all fragments together


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


class Reading:
    """One manifest while it is read: its problems, and the digests of its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.absolute().parent
        self.kind = ""
        self.flow_id: str | None = None
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
        name = shown(self.path.name or self.path)
        document = self._document(read_bytes(self.path, name), name)
        self.kind = self._kind(document)
        found = self._of_kind(document)
        if not found and not self.problems:
            self.problems.append(Problem(document.place(()), "the manifest holds no process"))
        return found

    def _of_kind(self, document: Located) -> list[Found]:
        match self.kind:
            case grammar.BATCH:
                return self._batch(document)
            case grammar.FLOW:
                return self._flow(document)
            case _:
                what = f"kind: {grammar.FRAGMENT} is read only by the flow that lists it; name the flow's file"
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

        value = document.value
        kind = value.get("kind") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind in grammar.KINDS:
            return kind
        hint = suggestion(kind, grammar.KINDS) if isinstance(kind, str) else ""
        what = f"kind: must be one of {', '.join(grammar.KINDS)}{hint}"
        self.problems.append(Problem(document.place(("kind",)), what))
        self.stop_on_problems()
        return ""

    def _load(self, document: Located, shape: Any) -> dict[str, Any] | None:
        """The document's checked fields; None when it has problems, which are noted."""
        try:
            loaded: dict[str, Any] = shape.load(document.value)
        except ValidationError as error:
            self.problems += _problems(error.messages, document, ())
            return None
        return loaded

    def _batch(self, document: Located) -> list[Found]:

        if self._load(document, grammar.BatchShape()) is None:
            return []
        defaults = document.at("defaults")
        if "quality" in document.value:
            upper = {"quality": document.value["quality"]}
            defaults = inherit(defaults, Located(upper, document.places))
        shape = ProcessShape()
        found = []
        for label, entry in _entries(document):
            located = _of_batch(defaults, entry, label, document.place(("defaults",)))
            self.problems += _batch_problems(located)
            if (fields := self._load(located, shape)) is not None:
                self._name_target(fields, located, label.name)
                found.append(Found(fields, located, label))
        return found

    def _flow(self, document: Located) -> list[Found]:

        flow = self._load(document, grammar.FlowShape())
        if flow is None:
            return []
        self.flow_id = flow["metadata"]["id"]
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
            self._name_target(fields, located, fields["source"].get("table", {}).get("name"))
            found.append(Found(fields, located, None))
        return found

    def _name_target(self, fields: Mapping[str, Any], located: Located, source_table: str | None) -> None:
        """A target without a name is called like the source's table, if that is a name a target can have."""
        table = fields["sink"]["table"]
        if "name" in table:
            return
        if source_table is None:
            what = "sink.table.name: required, since the source is no table whose name it could take"
            self.problems.append(Problem(located.place(("sink", "table")), what))
            return
        table["name"] = source_table
        messages = SinkTableShape().validate(table)
        self.problems += _problems(messages, located, ("sink", "table"))

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

        if self._kind(document) != grammar.FRAGMENT:
            self.problems.append(
                Problem(document.place(("kind",)), f"kind: a fragment's kind must be {grammar.FRAGMENT}")
            )
            return []
        fragment = self._load(document, grammar.FragmentShape())
        return [] if fragment is None else self._listed(document, fragment)


def _entries(document: Located) -> Iterable[tuple[Label, Located]]:
    schemas = document.at("schemas")
    for schema in schemas.value:
        tables = schemas.at(schema).at("tables")
        for index, entry in enumerate(tables.value):
            name = entry if isinstance(entry, str) else entry["name"]
            yield Label(schema, name), tables.at(index)


def _of_batch(defaults: Located, entry: Located, label: Label, named: Place) -> Located:
    """A table's process: the entry over the defaults. ``named`` is where its name is to be written."""
    own = {key: value for key, value in entry.value.items() if key != "name"} if isinstance(entry.value, dict) else {}
    located = inherit(defaults, Located(own, entry.places, entry.root))
    places = {**located.places}
    places.setdefault(("name",), named)
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
