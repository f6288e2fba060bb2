"""Keeps what was handed to the load's process out of everything that is shown: log lines, exceptions, XCom."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from ..connections.connection import Connection

_HIDDEN: Final = "***"
_SHORTEST: Final = 4  # a shorter word would hide half of every line, and hide nothing that a guess does not find
_IN_A_URL: Final = re.compile(r"(?<=://)([^\s/@:]*):[^\s/@]+@")
_IN_A_QUERY: Final = re.compile(r"(?i)([?&]password=)[^\s&'\"]+")


@dataclass(slots=True)
class Scrubber:
    """Knows secrets and takes them out of text, in every spelling that a URL or JSON gives them."""

    secrets: set[str] = field(default_factory=set)

    def learn(self, connection: Connection) -> None:
        """From here on nothing of this connection's password and textual params is shown."""
        found = [connection.password, *(value for value in connection.params.values() if isinstance(value, str))]
        for secret in found:
            if secret is not None and len(secret) >= _SHORTEST:
                self.secrets |= _spellings(secret)

    def text(self, text: str) -> str:
        """The text without any secret that is known, and without a password in any URL."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return _IN_A_QUERY.sub(rf"\1{_HIDDEN}", _IN_A_URL.sub(rf"\1:{_HIDDEN}@", text))

    def data(self, data: Any) -> Any:
        """The same for everything textual in JSON-like data."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {name: self.data(value) for name, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.data(value) for value in data]
        return data


def _spellings(secret: str) -> set[str]:
    """As it is, in a URL's path and query, in JSON, and as Python shows it."""
    quoted = (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret))
    escaped = {one[1:-1] for one in quoted}
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)} | escaped
