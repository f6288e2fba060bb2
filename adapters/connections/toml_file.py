"""Connections from a TOML file that the variable ``DPONE_CONNECTIONS`` names; one table a reference.

    [replay_source]
    host = "db.example.net"
    port = 9440
    database = "source"
    username = "reader"
    password_file = "/run/secrets/replay_source"
    secure = true
    params = { connect_timeout = 5 }

It may hold passwords, so it is refused when anybody but its owner can read or write it.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .connection import Connection
from .fields import FILED, PARTS, Said
from .refusals import invalid

VARIABLE: Final = "DPONE_CONNECTIONS"
_KEYS: Final = (*PARTS, "url", *(f"{part}_file" for part in FILED))
_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TomlProvider:
    """Knows the tables of the file; without the variable it knows nothing."""

    environ: Mapping[str, str]

    def connection(self, reference: str) -> Connection | None:
        """Raises DponeError (REQUEST_INVALID) for a file or a table that is not in order."""
        path = self.environ.get(VARIABLE)
        if not path:
            return None
        table = _parsed(_read_private(path)).get(reference)
        if table is None:
            return None
        if not isinstance(table, dict):
            raise invalid(f"[{reference}] of {VARIABLE}", "is not a table", "Write one table a connection.")
        for key in table:
            if key not in _KEYS:
                raise invalid(f"[{reference}] of {VARIABLE}", "has an unknown key", f"Keys: {', '.join(_KEYS)}.")
        return Said(reference, table, lambda part: f"[{reference}] {part}", text=False).connection()


def _read_private(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        raise invalid(VARIABLE, "does not name a readable file", "Check the path and its permissions.") from None
    with open(descriptor, "rb") as file:  # noqa: PTH123 (a descriptor, not a path)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise invalid(VARIABLE, "does not name a regular file", "Check the path.")
        if status.st_mode & 0o077 or status.st_uid not in (0, os.geteuid()):
            raise invalid(VARIABLE, "names a file that others can read or own", "chmod 600 the file, as its owner.")
        return file.read(_BYTES_MAX)


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except ValueError:  # its message may quote a line, and a line may hold a password
        raise invalid(
            VARIABLE, "names a file that is not TOML 1.0", "Correct it; any TOML checker says where."
        ) from None
