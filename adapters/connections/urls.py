"""Connection URLs: ``kind://username:password@host:port/database?secure=true&param=value``, percent-encoded.

Kinds: ``clickhouse``, ``clickhouses`` (with TLS), ``postgres``, ``postgresql``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from .refusals import invalid

KINDS: Final[Mapping[str, str]] = {
    "clickhouse": "clickhouse",
    "clickhouses": "clickhouse",
    "postgres": "postgres",
    "postgresql": "postgres",
}
_REMEDY: Final = "Give kind://username:password@host:port/database; percent-encode special characters."


@dataclass(frozen=True, slots=True)
class UrlParts:
    """What a URL says; a part that it does not mention is absent."""

    values: Mapping[str, Any]
    kind: str | None


def parts_of_url(url: str, where: str) -> UrlParts:
    """Read a URL strictly. Raises DponeError (REQUEST_INVALID) naming ``where``, never the URL."""
    split, port = _split(url, where)
    if split.scheme not in KINDS:
        raise invalid(where, "begins with an unknown kind", f"Kinds: {', '.join(KINDS)}.")
    if split.fragment or "/" in split.path[1:]:
        raise invalid(where, "is not of the form that is read", _REMEDY)
    values: dict[str, Any] = {
        "host": _decoded(split.hostname),
        "port": port,
        "database": _decoded(split.path[1:]),
        "username": _decoded(split.username),
        "password": None if split.password is None else unquote(split.password),
    }
    if split.scheme == "clickhouses":
        values["secure"] = "true"
    values |= _query(split.query, where, values)
    return UrlParts({name: value for name, value in values.items() if value is not None}, KINDS[split.scheme])


def _split(url: str, where: str) -> tuple[SplitResult, int | None]:
    try:
        split = urlsplit(url)
        return split, split.port
    except ValueError:
        raise invalid(where, "is not a URL", _REMEDY) from None


def _decoded(text: str | None) -> str | None:
    return unquote(text) if text else None


def _query(query: str, where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise invalid(where, "has a query that is not name=value", _REMEDY) from None
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names) or ("secure" in names and "secure" in values):
        raise invalid(where, "says something twice", "Give each name once.")
    given = dict(pairs)
    found: dict[str, Any] = {name: given.pop(name) for name in ("secure", "ca_file") if name in given}
    return found | ({"params": given} if given else {})
