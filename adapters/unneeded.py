"""Keeps pandas out of a process that is the product's own.

Wherever it is installed, pyarrow imports it for the first number it is given: 0.3 s of CPU and some memory that nothing
here needs. Only the installed program does this; a program that uses the product keeps its pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAME = "pandas"


class _Absent:
    """A finder that says what the import system says of a package that is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == _NAME:
            raise ModuleNotFoundError(f"{_NAME} is kept out of this process", name=_NAME)
        return None


_ABSENT = _Absent()


def keep_out() -> None:
    """From now on pandas cannot be imported. What has imported it already keeps it."""
    if _ABSENT not in sys.meta_path:
        sys.meta_path.insert(0, _ABSENT)
