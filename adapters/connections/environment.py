"""Connections from the environment: ``DPONE_CONN_<REFERENCE>_HOST`` and its siblings, or ``…_URL``.

The reference is written in capitals, with ``_`` for every character that is neither a letter nor a digit. A value may
be the content of a file: ``…_PASSWORD_FILE``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .connection import Connection
from .fields import FILED, PARTS, Said
from .refusals import invalid

_NAMES: Final = (*PARTS, "url", *(f"{part}_file" for part in FILED))


def variable_stem(reference: str) -> str:
    """The reference as it stands in names of variables: ``replay-source`` to ``REPLAY_SOURCE``."""
    return re.sub(r"[^A-Z0-9]", "_", reference.upper())


@dataclass(frozen=True, slots=True)
class EnvironmentProvider:
    """Knows a reference when any of its variables is set."""

    environ: Mapping[str, str]

    def connection(self, reference: str) -> Connection | None:
        """Raises DponeError (REQUEST_INVALID, CONNECTION_NOT_FOUND) for variables that do not make a connection."""
        stem = f"DPONE_CONN_{variable_stem(reference)}_"
        values = {name: self.environ[stem + name.upper()] for name in _NAMES if stem + name.upper() in self.environ}
        self._refuse_misspelt(stem)
        if not values:
            return None
        return Said(reference, values, lambda part: stem + part.upper(), text=True).connection()

    def _refuse_misspelt(self, stem: str) -> None:
        """Only endings of one word: ``A_B_HOST`` may belong to the reference ``a_b`` rather than ``a``."""
        for name in self.environ:
            ending = name.removeprefix(stem)
            if name.startswith(stem) and "_" not in ending and ending.lower() not in _NAMES:
                raise invalid(
                    f"{name[:80]!r}", "is not a variable that is read", f"Endings: {', '.join(_NAMES).upper()}."
                )
