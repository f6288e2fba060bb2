"""Strict YAML 1.2: one document of mappings, lists and core-schema scalars, with the place of everything.

The C parser's events are walked once, so nothing is ever expanded or constructed. Refused: duplicate and non-string
keys, ``<<``, tags, directives, anchors and aliases, a second document, nesting deeper than DEPTH_MAX, NaN and infinity.

Plain scalars follow the core schema (YAML 1.2.2, section 10.3.2): ``null ~``, ``true false`` (also capitalised),
decimal integers (``010`` is ten), ``0o17``, ``0x1F`` and decimal fractions, which become :class:`~decimal.Decimal` so
that a tolerance is what was written. Everything else is text: ``no``, ``on``, ``0b1``, ``1_000``, ``2013-01-01``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

FILE_BYTES_MAX: Final = 1024 * 1024
DEPTH_MAX: Final = 64
NUMBER_CHARACTERS_MAX: Final = 40
ERRORS_MAX: Final = 100

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+")
_FRACTION: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

Path = tuple[str | int, ...]
"""Where a value stands in a document: keys and list indexes from the root."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a file. Lines and columns (in characters) count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake: where it is and what is accepted there."""

    place: Place
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Located:
    """A value and the place of everything in it (of a mapping's entry: the place of its key).

    ``places`` may belong to a larger document, in which the value stands at ``root``.
    """

    value: Any
    places: Mapping[Path, Place]
    root: Path = ()

    def place(self, path: Path) -> Place:
        """The place of ``path`` below the value, or of its nearest ancestor that was written."""
        whole = (*self.root, *path)
        while whole and whole not in self.places:
            whole = whole[:-1]
        return self.places[whole]

    def at(self, step: str | int) -> Located:
        """The part at one key or index."""
        return Located(self.value[step], self.places, (*self.root, step))


class Unreadable(Exception):
    """The text is not acceptable YAML; ``problems`` says everything that was found."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def parse(text: str, file: str) -> Located:
    """Read one document. Raises Unreadable. ``file`` is how places name the file."""
    walk = _Walk(file)
    value = walk.document(text)
    if walk.problems:
        raise Unreadable(tuple(sorted(set(walk.problems))))
    return Located(value, walk.places)


class _Stop(Exception):
    """Reading on makes no sense; the reason is already noted."""


@dataclass(slots=True)
class _Walk:
    file: str
    problems: list[Problem] = field(default_factory=list)
    places: dict[Path, Place] = field(default_factory=dict)

    def document(self, text: str) -> Any:
        try:
            events = self._events(text)
            value = self._first(events)
            for _, kind, mark in events:
                if kind == "DocumentStartEvent":
                    self._note(mark, "a second document begins here; a file holds exactly one")
                    break
        except _Stop:
            return None
        return value

    def _events(self, text: str) -> Iterator[tuple[Any, str, Any]]:
        from _ruamel_yaml import CParser  # type: ignore[import-not-found]
        from ruamel.yaml.error import YAMLError

        parser = CParser(text)
        try:
            while (event := parser.get_event()) is not None:
                yield event, type(event).__name__, event.start_mark
        except YAMLError as error:
            # The C parser's problems are fixed sentences without a word of the file.
            problem = getattr(error, "problem", None) or "a character that YAML does not allow"
            self._note(getattr(error, "problem_mark", None) or _mark_of(error, text), f"not YAML: {problem}")
            raise _Stop from None

    def _first(self, events: Iterator[tuple[Any, str, Any]]) -> Any:
        for event, kind, mark in events:
            match kind:
                case "DocumentStartEvent":
                    if event.version or event.tags:
                        self._note(mark, "directives (%YAML, %TAG) are refused; remove the line")
                case "StreamEndEvent":
                    self._note(mark, "the file holds nothing; it must begin with kind:")
                    raise _Stop
                case "StreamStartEvent":
                    pass
                case _:
                    return self._value(events, event, kind, mark, ())
        raise _Stop

    def _value(self, events: Iterator[tuple[Any, str, Any]], event: Any, kind: str, mark: Any, path: Path) -> Any:
        if len(path) > DEPTH_MAX:
            self._note(mark, f"nested deeper than {DEPTH_MAX} levels")
            raise _Stop
        self.places.setdefault(path, self._place(mark))
        if kind == "AliasEvent":
            self._note(mark, "aliases (*name) are refused; write the value out")
            return None
        if event.anchor is not None:
            self._note(mark, "anchors (&name) are refused; write the value out where it is needed")
        if event.tag is not None:
            self._note(mark, "tags (!name) are refused; remove it")
        match kind:
            case "MappingStartEvent":
                return self._mapping(events, path)
            case "SequenceStartEvent":
                return self._sequence(events, path)
            case _:
                return self._scalar(event, mark)

    def _sequence(self, events: Iterator[tuple[Any, str, Any]], path: Path) -> list[Any]:
        values: list[Any] = []
        for event, kind, mark in events:
            if kind == "SequenceEndEvent":
                break
            values.append(self._value(events, event, kind, mark, (*path, len(values))))
        return values

    def _mapping(self, events: Iterator[tuple[Any, str, Any]], path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for event, kind, mark in events:
            if kind == "MappingEndEvent":
                break
            key = self._key(events, event, kind, mark, values, path)
            self.places.setdefault((*path, key), self._place(mark))
            value_event, value_kind, value_mark = next(events)
            value = self._value(events, value_event, value_kind, value_mark, (*path, key))
            values.setdefault(key, value)
        return values

    def _key(
        self, events: Iterator[tuple[Any, str, Any]], event: Any, kind: str, mark: Any, seen: dict[str, Any], path: Path
    ) -> str:
        key: Any = self._value(events, event, kind, mark, (*path, ""))
        self.places.pop((*path, ""), None)
        if kind == "AliasEvent":
            return ""
        if key == "<<" and not event.style:
            self._note(mark, "merge keys (<<) are refused; write the fields out")
        elif not isinstance(key, str):
            self._note(mark, "a key must be text; put it in quotes")
            return ""
        elif key in seen:
            self._note(mark, f"the key {key[:60]!r} stands here a second time; keep one")
        return str(key)

    def _scalar(self, event: Any, mark: Any) -> Any:
        text: str = event.value
        if event.style:  # quoted or block text is text
            return text
        if text in _NULL:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _NOT_FINITE.fullmatch(text):
            self._note(mark, "NaN and infinity are refused; write a finite number")
            return None
        return self._number(text, mark)

    def _number(self, text: str, mark: Any) -> Any:
        for pattern, convert in _NUMBERS:
            if not pattern.fullmatch(text):
                continue
            if len(text) <= NUMBER_CHARACTERS_MAX:
                return convert(text)
            self._note(mark, f"a number of more than {NUMBER_CHARACTERS_MAX} characters; put text in quotes")
            return None
        return text

    def _place(self, mark: Any) -> Place:
        return Place(self.file, mark.line + 1, mark.column + 1)

    def _note(self, mark: Any, what: str) -> None:
        self.problems.append(Problem(self._place(mark), what))
        if len(self.problems) >= ERRORS_MAX:
            raise _Stop


_NUMBERS: Final = (
    (_INTEGER, int),
    (_OCTAL, lambda text: int(text[2:], 8)),
    (_HEXADECIMAL, lambda text: int(text[2:], 16)),
    (_FRACTION, Decimal),
)


@dataclass(frozen=True, slots=True)
class _Mark:
    line: int
    column: int


def _mark_of(error: Any, text: str) -> _Mark:
    """The place of a character that the parser refuses; it counts in UTF-8 bytes."""
    before = text.encode()[: max(getattr(error, "position", 0), 0)].decode(errors="ignore")
    return _Mark(before.count("\n"), len(before) - (before.rfind("\n") + 1))
