"""Importing Arrow's Python package while no other thread of this program asks what a value is.

Its import makes classes with two abstract bases (``MapScalar`` is a ``Sequence`` and a ``Mapping``). Until
``ABCMeta.__new__`` has given such a class a register of its own, it answers with the one of its first base, that is
``Sequence``. A thread that asks ``isinstance(value, Mapping)`` at that moment is told yes for a tuple, a list and a
string, and ``Mapping`` caches the answer for the rest of the process's life: what is to be recorded as a value is then
taken for a mapping. Seen with CPython 3.11 and pyarrow 26, once in some hundred imports beside a busy thread.
"""

from __future__ import annotations

import importlib
from contextlib import suppress


def load() -> None:
    """Call before a thread is started that imports it, or that looks at values while another thread imports it.

    Where it is not installed, whoever needs it says so.
    """
    with suppress(ImportError):
        importlib.import_module("pyarrow")
