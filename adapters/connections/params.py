"""The further settings of a connection, against those that a driver's module knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .connection import Connection, ParamValue
from .refusals import invalid

Check = Callable[[ParamValue], Any]
"""Turns a param's value into what the driver takes. Raises ValueError with what it should be, never with the value."""

SECONDS_MAX = 86_400


def checked_params(connection: Connection, known: Mapping[str, Check]) -> dict[str, Any]:
    """Every param, checked. Raises DponeError (REQUEST_INVALID) for one that is not known or cannot be meant."""
    found = {}
    for name, value in connection.params.items():
        where = f"The param {str(name)[:80]!r} of the connection {connection.reference!r}"
        if name not in known:
            raise invalid(where, "is not known", f"Params: {', '.join(sorted(known))}.")
        try:
            found[name] = known[name](value)
        except ValueError as error:
            raise invalid(where, f"is not {error}", "Correct it.") from None
    return found


def require_kind(connection: Connection, kind: str) -> None:
    """Raise DponeError (REQUEST_INVALID) when the provider says that the connection leads to another kind of server."""
    if connection.kind not in (None, kind):
        raise invalid(
            f"The connection {connection.reference!r}",
            f"leads to {connection.kind}, and {kind} is needed",
            "Name another connection, or correct its URL or type.",
        )


def seconds(value: ParamValue) -> float:
    """A duration above zero; text is taken as it comes from a URL."""
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except ValueError:
        number = math.nan
    if not 0 < number <= SECONDS_MAX:
        raise ValueError(f"a number of seconds above 0 and up to {SECONDS_MAX:,}")
    return number


def flag(value: ParamValue) -> bool:
    """True or false, or one of these words as it comes from a URL."""
    words = {"true": True, "false": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError("true or false")


def text(value: ParamValue) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("text")
    return value


def file(value: ParamValue) -> str:
    """The path of a file that is there."""
    path = text(value)
    if not Path(path).is_file():
        raise ValueError("the path of a file")
    return path


def one_of(*words: str) -> Check:
    """One of a few words."""

    def check(value: ParamValue) -> str:
        if value not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(value)

    return check
