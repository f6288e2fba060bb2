"""The address of a ledger in Keeper, ``keeper://host:port[,host:port…]/root``, and the credentials beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..domain.errors import ErrorCode, LedgerFailed
from .secret_files import is_open_to_others

AUTH: Final = "DPONE_KEEPER_AUTH"
AUTH_FILE: Final = "DPONE_KEEPER_AUTH_FILE"
ROOT_CHARACTERS_MAX: Final = 200
_AUTH_BYTES_MAX: Final = 4 * 1024
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_PART = re.compile(r"[A-Za-z0-9_.-]+")
_USE = "Use --ledger keeper://host:port/root, with more servers as host:port,host:port"


@dataclass(frozen=True, slots=True)
class KeeperAddress:
    """Servers as ``host:port,…`` and an absolute root without a slash at its end. Shown by ``name`` only."""

    hosts: str = field(repr=False)
    root: str = field(repr=False)

    @property
    def name(self) -> str:
        return self.root.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class KeeperUser:
    """Who one is to Keeper, by digest authentication."""

    name: str
    password: str = field(repr=False)


def parse_address(rest: str) -> KeeperAddress:
    """What follows ``keeper://``. Raises LedgerFailed with REQUEST_INVALID, quoting nothing that could be secret."""
    hosts, slash, path = rest.partition("/")
    if "@" in rest:
        raise _wrong(
            "it holds credentials", f"Give them as {AUTH}=user:password or in a file named by {AUTH_FILE}. {_USE}"
        )
    if "?" in rest or "#" in rest:
        raise _wrong("it has a query or a fragment")
    ports = [_HOST.fullmatch(host) for host in hosts.split(",")]
    if not all(port and 0 < int(port[1]) < 65_536 for port in ports):
        raise _wrong("its servers are not host:port, separated by commas")
    parts = path.split("/")
    if not slash or not path:
        raise _wrong("a root must follow the servers")
    if not all(_PART.fullmatch(part) and part not in (".", "..") for part in parts):
        raise _wrong("its root has an empty name, a dot name, or other characters than letters, digits and _ . -")
    if parts[0] == "zookeeper":
        raise _wrong("/zookeeper belongs to Keeper itself")
    if len(path) > ROOT_CHARACTERS_MAX:
        raise _wrong(f"its root is longer than {ROOT_CHARACTERS_MAX} characters")
    return KeeperAddress(hosts, f"/{path}")


def user_of(environment: Mapping[str, str]) -> KeeperUser | None:
    """The credentials that the environment gives, None without any. Raises LedgerFailed with REQUEST_INVALID."""
    given, file = environment.get(AUTH), environment.get(AUTH_FILE)
    if given and file:
        raise _credentials(f"{AUTH} and {AUTH_FILE} are both set", "Unset one of them.")
    if file:
        given = _content(Path(file))
    if not given:
        return None
    name, separator, password = given.partition(":")
    if not separator or not name or not password or not given.isprintable():
        raise _credentials(f"{AUTH_FILE if file else AUTH} is not user:password", "Write it as user:password.")
    return KeeperUser(name, password)


def _content(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            exposed = is_open_to_others(stream.fileno())
            text = stream.read(_AUTH_BYTES_MAX + 1).decode()
    except (OSError, ValueError) as error:
        raise _credentials(f"the file that {AUTH_FILE} names cannot be read", "Check its path and rights.") from error
    if exposed:
        raise _credentials(f"others can read or write the file that {AUTH_FILE} names", "chmod 600 the file.")
    if len(text) > _AUTH_BYTES_MAX or not text.strip():
        raise _credentials(f"the file that {AUTH_FILE} names is empty or too long", "Write user:password into it.")
    return text.rstrip("\r\n")


def _wrong(problem: str, advice: str = _USE) -> LedgerFailed:
    return LedgerFailed(ErrorCode.REQUEST_INVALID, f"The ledger's URL is wrong: {problem}.", next=advice)


def _credentials(problem: str, advice: str) -> LedgerFailed:
    return LedgerFailed(ErrorCode.REQUEST_INVALID, f"The ledger's credentials are wrong: {problem}.", next=advice)
