"""How a command that a person is to type next names its ledger: without a password, whoever put one into the URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

_WITH_PASSWORD = re.compile(r"(?P<user>[^/?#:@]*):[^/?#@]*@(?P<place>[^@?#]*)")
_SECRETS: Final = ("password",)


def ledger_words(url: str | None, environ: Mapping[str, str]) -> list[str]:
    """The words ``--ledger URL`` for ``url``, or none where the command works without.

    A URL that holds a password is left out when DPONE_LEDGER says the same, for then the next command reads it there
    too. Otherwise it is named without its password, which PostgreSQL's library takes from PGPASSFILE or PGPASSWORD.
    """
    if url is None:
        return []
    shown = _without_password(url)
    if shown == url:
        return ["--ledger", url]
    if shown is None or environ.get("DPONE_LEDGER") == url:
        return []
    return ["--ledger", shown]


def _without_password(url: str) -> str | None:
    """The URL as it may be shown; None for one that holds a password in a place that cannot be told for certain."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "sqlite":
        return url
    place, mark, query = rest.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    kept = [pair for pair in given if pair[0].lower() not in _SECRETS]
    if len(kept) != len(given):
        query = urlencode(kept, quote_via=quote)
        mark = "?" if query else ""
    found = _WITH_PASSWORD.fullmatch(place)
    if found is not None:
        place = f"{found['user']}@{found['place']}"
    elif ":" in rest.rpartition("@")[0]:
        return None  # an unescaped / ? or @ in a password
    return f"{scheme}://{place}{mark}{query}"
