"""Strict marshmallow fields: no coercion, every refusal says what is accepted and never repeats the value.

marshmallow's own fields take ``1`` and ``"true"`` as booleans and ``"1"`` as a number, and would cut ``1.5`` down to 1.
``json`` of each field is its JSON Schema, so that an editor accepts what the loader accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from itertools import islice
from typing import Any, Final

from marshmallow import INCLUDE, Schema, ValidationError, fields, validates_schema

from ...domain.limits import COLUMNS_MAX
from ...domain.tables import Column
from ...domain.types import SUPPORTED, UnsupportedType, parse_type
from .yaml import NUMBER_CHARACTERS_MAX

RESERVED: Final = "* ? , ! :"
NAME_CHARACTERS_MAX: Final = 250
IDENTIFIER_CHARACTERS_MAX: Final = 128
REFERENCE_CHARACTERS_MAX: Final = 63
QUERY_CHARACTERS_MAX: Final = 64 * 1024
PATH_CHARACTERS_MAX: Final = 4096
TYPE_CHARACTERS_MAX: Final = 100
SUGGESTIONS_MAX: Final = 1_000  # words compared with a misspelled one
UNKNOWN_MAX: Final = 20  # unknown fields reported for one mapping
AMOUNT_DIGITS_MAX: Final = 15
AMOUNT_DECIMALS_MAX: Final = 9

_EXACT: Final = Context(prec=2 * NUMBER_CHARACTERS_MAX)
_FINEST: Final = Decimal(1).scaleb(-AMOUNT_DECIMALS_MAX)
_NAME: Final = re.compile(r"[^*?,!:]+")
_IDENTIFIER: Final = re.compile(r"[^*?,!:./\\`'\"]+")
_REFERENCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TEXTS: Final = {
    "required": "required",
    "null": "must not be empty (null)",
    "type": "must be a mapping of fields",
}
_MESSAGES: Final[dict[str, str | list[Any] | dict[Any, Any]]] = {**_TEXTS, "invalid": "must be a list"}


def kind_of(value: Any) -> str:
    """What a person calls this kind of value. The value itself is never shown: it could be a secret."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return "a boolean"
        case int():
            return "a whole number"
        case Decimal():
            return "a decimal number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def suggestion(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` when a known word is close, else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word[:100], list(islice(known, SUGGESTIONS_MAX)), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


class Strict(fields.Field[Any]):
    """A field whose JSON Schema is known."""

    default_error_messages = _MESSAGES

    def json(self) -> dict[str, Any]:
        """The JSON Schema of what is accepted."""
        raise NotImplementedError


class Flag(Strict):
    """A real boolean."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise ValidationError(f"must be true or false, not {kind_of(value)}")

    def json(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Whole(Strict):
    """A whole number within bounds, both included; never a boolean or a fraction."""

    def __init__(self, minimum: int, maximum: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.minimum, self.maximum = minimum, maximum

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        bounds = f"must be a whole number from {self.minimum} to {self.maximum}"
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValidationError(f"{bounds}, not {kind_of(value)}")
        if not self.minimum <= value <= self.maximum:
            raise ValidationError(bounds)
        return value

    def json(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


class Amount(Strict):
    """A tolerance: zero or more, exact. Loads as its canonical decimal string, ``0.5`` for ``0.50``."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise ValidationError(f"must be a number, zero or more, not {kind_of(value)}")
        exact = Decimal(value)
        if exact < 0:
            raise ValidationError("must be zero or more")
        # Looked at before any arithmetic: an exponent of a thousand million is cheap to write and dear to compute with.
        fits = exact.adjusted() < AMOUNT_DIGITS_MAX and exact.adjusted() >= -AMOUNT_DECIMALS_MAX
        exact = exact.normalize(_EXACT) if fits or not exact else exact
        if exact and not (fits and exact == exact.quantize(_FINEST, context=_EXACT)):
            raise ValidationError(f"must have at most {AMOUNT_DIGITS_MAX} digits and {AMOUNT_DECIMALS_MAX} decimals")
        return format(abs(exact), "f")

    def json(self) -> dict[str, Any]:
        return {"type": "number", "minimum": 0}


class Choice(Strict):
    """One word of a closed list."""

    def __init__(self, allowed: Iterable[str], **rest: Any) -> None:
        super().__init__(**rest)
        self.allowed = tuple(str(word) for word in allowed)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        words = "must be " + (
            " or ".join(self.allowed) if len(self.allowed) < 3 else "one of " + ", ".join(self.allowed)
        )
        if not isinstance(value, str):
            raise ValidationError(f"{words}, not {kind_of(value)}")
        if value not in self.allowed:
            raise ValidationError(words + suggestion(value, self.allowed))
        return value

    def json(self) -> dict[str, Any]:
        return {"enum": list(self.allowed)}


class Mode(Choice):
    """A load strategy. An incremental one is understood, so that it can be refused as unsupported, not as a typo."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        if isinstance(value, str) and value.startswith("incremental"):
            return value
        return super()._deserialize(value, attr, data, **kwargs)


class Text(Strict):
    """Text of 1 to ``longest`` characters, printable unless ``multiline``."""

    form = "text"
    pattern: re.Pattern[str] | None = None

    def __init__(self, longest: int, *, shortest: int = 1, multiline: bool = False, **rest: Any) -> None:
        super().__init__(**rest)
        self.shortest, self.longest, self.multiline = shortest, longest, multiline

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        length = f"{self.shortest} to {self.longest} characters"
        length = "one character" if self.shortest == self.longest == 1 else length
        must = f"must be {self.form} of {length}"
        if not isinstance(value, str):
            raise ValidationError(
                f"{must}, not {kind_of(value)}" + (" (put it in quotes)" if value is not None else "")
            )
        if not self.shortest <= len(value) <= self.longest:
            raise ValidationError(must)
        if not self.multiline and not value.isprintable():
            raise ValidationError(f"{must}, without control characters")
        if self.pattern is not None and (not self.pattern.fullmatch(value) or value != value.strip()):
            raise ValidationError(must)
        return value

    def json(self) -> dict[str, Any]:
        form: dict[str, Any] = {"type": "string", "minLength": self.shortest, "maxLength": self.longest}
        return form if self.pattern is None else {**form, "pattern": f"^(?:{self.pattern.pattern})$"}


class Name(Text):
    """The name of a process, gate or flow."""

    form = f"a name (without {RESERVED} or surrounding spaces)"
    pattern = _NAME

    def __init__(self, **rest: Any) -> None:
        super().__init__(NAME_CHARACTERS_MAX, **rest)


class Identifier(Text):
    """The name of a database, schema, table or cluster."""

    form = f"a name (without {RESERVED} . / \\ quotes or surrounding spaces)"
    pattern = _IDENTIFIER

    def __init__(self, **rest: Any) -> None:
        super().__init__(IDENTIFIER_CHARACTERS_MAX, **rest)


class Reference(Text):
    """The name under which a connection is looked up at run time."""

    form = "a connection's name (a letter, then letters, digits and _)"
    pattern = _REFERENCE

    def __init__(self, **rest: Any) -> None:
        super().__init__(REFERENCE_CHARACTERS_MAX, **rest)


class Column_(Text):  # noqa: N801 - Column is the value
    """The name of a column."""

    form = "a column's name"

    def __init__(self, **rest: Any) -> None:
        super().__init__(IDENTIFIER_CHARACTERS_MAX, **rest)


class Several(Strict):
    """A list of ``item``, each at most once."""

    def __init__(self, item: Strict, longest: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.item, self.longest = item, longest

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValidationError(f"must be a list, not {kind_of(value)}")
        if len(value) > self.longest:
            raise ValidationError(f"must be a list of at most {self.longest}")
        loaded: dict[Any, None] = {}
        problems: dict[Any, list[str]] = {}
        for index, element in enumerate(value):
            try:
                item = self.item.deserialize(element)
            except ValidationError as error:
                problems[index] = [str(message) for message in error.messages]
                continue
            if item in loaded:
                problems[index] = ["stands in the list a second time; keep one"]
            loaded[item] = None
        if problems:
            raise ValidationError(problems)
        return tuple(loaded)

    def json(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.json(), "maxItems": self.longest, "uniqueItems": True}


class Columns(Strict):
    """``name: ClickHouse type`` in order; loads as columns with canonical type names."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> tuple[Column, ...]:
        if not isinstance(value, dict) or not value:
            raise ValidationError("must be a mapping of column names to ClickHouse types, in the table's order")
        if len(value) > COLUMNS_MAX:
            raise ValidationError(f"must be at most {COLUMNS_MAX} columns")
        columns: list[Column] = []
        problems: dict[Any, list[str]] = {}
        for name, kind in value.items():
            try:
                columns.append(Column(str(_COLUMN_NAME.deserialize(name)), self._type(kind)))
            except ValidationError as error:
                problems[name] = [str(message) for message in error.messages]
        if problems:
            raise ValidationError(problems)
        return tuple(columns)

    def _type(self, kind: Any) -> str:
        if not isinstance(kind, str) or len(kind) > TYPE_CHARACTERS_MAX:
            raise ValidationError("must be a ClickHouse type's name, for example UInt16 or Nullable(String)")
        try:
            return str(parse_type(kind))
        except UnsupportedType:
            raise ValidationError(f"must be one of: {SUPPORTED}") from None

    def json(self) -> dict[str, Any]:
        return {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}


_COLUMN_NAME: Final = Column_()


class Shape(Schema):
    """A mapping with known fields only."""

    error_messages = _TEXTS

    class Meta:
        unknown = INCLUDE  # so that _known can refuse them with a suggestion

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _known(self, data: Any, original: Any, **_: Any) -> None:
        if not isinstance(original, Mapping):
            return
        known = sorted(self.fields)
        unknown = [key for key in original if key not in self.fields][:UNKNOWN_MAX]
        if unknown:
            raise ValidationError(
                {
                    key: [f"unknown field{suggestion(key, known) or '; known are ' + ', '.join(known)}"]
                    for key in unknown
                }
            )


def part(shape: type[Shape], **rest: Any) -> fields.Nested:
    """A field that holds a mapping of this shape."""
    return fields.Nested(shape, error_messages=_MESSAGES, **rest)


class Bounded(fields.List[Any]):
    """A list of at most ``longest`` items, counted before any of them is looked at."""

    def __init__(self, item: fields.Field[Any], longest: int, **rest: Any) -> None:
        super().__init__(item, error_messages=_MESSAGES, **rest)
        self.longest = longest

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if isinstance(value, list) and len(value) > self.longest:
            raise ValidationError(f"must be a list of at most {self.longest}")
        return super()._deserialize(value, attr, data, **kwargs)


def parts(shape: type[Shape], longest: int, **rest: Any) -> Bounded:
    """A field that holds a list of such mappings."""
    return Bounded(part(shape), longest, **rest)
