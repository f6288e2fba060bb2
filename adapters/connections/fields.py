"""What a provider says, part by part, to one :class:`Connection`: strictly, nothing guessed and nothing ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...ledger.secret_files import is_open_to_others
from .connection import Connection, ParamValue
from .refusals import invalid, not_found
from .urls import parts_of_url

PARTS: Final = ("host", "port", "database", "username", "password", "secure", "ca_file", "params")
FILED: Final = ("host", "port", "database", "username", "password", "secure", "params", "url")
"""What may be the content of a file instead, under the same name with ``_file``."""
_SECRET: Final = ("password", "params", "url")
_TRUE: Final = ("true", "1", "yes", "on")
_FALSE: Final = ("false", "0", "no", "off")
_FILE_BYTES_MAX: Final = 64 * 1024
_HOST: Final = re.compile(
    r"[A-Za-z0-9_.\-]{1,253}"  # a name or an IPv4 address
    r"|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f.]{0,15}){2,8}(?:%[A-Za-z0-9]{1,16})?"  # an IPv6 address
    r"|/[\x21-\x7e]{0,200}"  # the folder of a Unix socket
)

Named = Callable[[str], str]
"""How a provider calls a part: ``port`` to ``DPONE_CONN_REPLAY_SOURCE_PORT``."""


@dataclass(frozen=True, slots=True)
class Said:
    """Everything that a provider said about one reference. ``text`` means that all values came as text."""

    reference: str
    values: Mapping[str, Any]
    named: Named
    text: bool

    def connection(self) -> Connection:
        """The connection. Raises DponeError (REQUEST_INVALID, CONNECTION_NOT_FOUND), which quotes no value."""
        values, kind = self._complete(self._with_files())
        if not values.get("host"):
            raise not_found(self.reference, (self.named("host"), self.named("url")))
        return Connection(
            reference=self.reference,
            host=self._host(values["host"]),
            port=self._port(values.get("port")),
            database=self._filled("database", values.get("database")),
            username=self._filled("username", values.get("username")),
            password=self._text("password", values.get("password")),
            secure=self._flag("secure", values.get("secure")),
            ca_file=self._ca_file(values.get("ca_file")),
            params=MappingProxyType(self._params(values.get("params"))),
            kind=kind,
        )

    def _with_files(self) -> dict[str, Any]:
        values = {name: value for name, value in self.values.items() if not self._is_filed(name)}
        for name in self.values:
            if not self._is_filed(name):
                continue
            part = name.removesuffix("_file")
            if part in values:
                raise invalid(self.named(part), f"and {self.named(name)} are both set", "Set one of the two.")
            values[part] = self._content(name, self.values[name])
        return values

    @staticmethod
    def _is_filed(name: str) -> bool:
        return name.endswith("_file") and name.removesuffix("_file") in FILED

    def _content(self, name: str, path: Any) -> str:
        try:
            with Path(str(path)).open("rb") as file:
                exposed = name.removesuffix("_file") in _SECRET and is_open_to_others(file.fileno())
                raw = file.read(_FILE_BYTES_MAX + 1)
            text = raw.decode()
        except (OSError, ValueError):
            raise invalid(self.named(name), "does not name a readable text file", "Check the file.") from None
        if exposed:
            raise invalid(self.named(name), "names a file that others can read or write", "chmod 600 the file.")
        if len(raw) > _FILE_BYTES_MAX:
            raise invalid(self.named(name), f"names a file of more than {_FILE_BYTES_MAX:,} bytes", "Check the file.")
        return text.removesuffix("\n").removesuffix("\r")

    def _complete(self, values: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
        """Parts may complete a URL; whatever both of them say is refused, also when they agree."""
        url = values.pop("url", None)
        if url is None:
            return values, None
        found = parts_of_url(self._text("url", url) or "", self.named("url"))
        for part in found.values:
            if part in values:
                raise invalid(
                    self.named("url"), f"and {self.named(part)} both give the {part}", "Leave one of the two out."
                )
        return {**found.values, **values}, found.kind

    def _host(self, value: Any) -> str:
        host = self._text("host", value) or ""
        if not _HOST.fullmatch(host):
            raise invalid(self.named("host"), "is not a host name or address", "Give the host alone, without a port.")
        return host

    def _port(self, value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,5}", value):
            value = int(value)
        if type(value) is not int or not 1 <= value <= 65_535:
            raise invalid(self.named("port"), "is not a port", "Give a whole number from 1 to 65535.")
        return value

    def _flag(self, name: str, value: Any) -> bool | None:
        if value is None or (type(value) is bool and not self.text):
            return value
        if isinstance(value, str) and value.lower() in _TRUE:
            return True
        if isinstance(value, str) and value.lower() in _FALSE:
            return False
        raise invalid(self.named(name), "is neither true nor false", f"Give {' or '.join((_TRUE[0], _FALSE[0]))}.")

    def _text(self, name: str, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str) or "\0" in value:
            raise invalid(self.named(name), "is not text", "Put the value in quotes.")
        return value

    def _filled(self, name: str, value: Any) -> str | None:
        text = self._text(name, value)
        if text is not None and not text.strip():
            raise invalid(self.named(name), "is empty", "Give a value, or leave it out.")
        return text

    def _ca_file(self, value: Any) -> str | None:
        path = self._filled("ca_file", value)
        if path is not None and not Path(path).is_file():
            raise invalid(self.named("ca_file"), "does not name a file", "Give the path of a PEM file.")
        return path

    def _params(self, value: Any) -> dict[str, ParamValue]:
        if value is None:
            return {}
        if isinstance(value, str):
            try:
                value = json.loads(value, object_pairs_hook=_unique)
            except ValueError:
                raise self._bad_params() from None
        if not isinstance(value, Mapping) or not all(isinstance(item, str | int | float) for item in value.values()):
            raise self._bad_params()
        return dict(value)

    def _bad_params(self) -> Exception:
        return invalid(
            self.named("params"),
            "is not one JSON object of plain values, each name once",
            'Give, for example, {"connect_timeout": 5}.',
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)
