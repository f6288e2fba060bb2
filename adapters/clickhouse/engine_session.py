"""Opening the embedded engine and asking it, in whatever thread calls. Shared by the platform and the reader's worker.

A ``config.xml`` in the current folder would configure the engine, or break it: both the import and the opening look for
one there. So they run in the engine's own folder while such a file lies in the current one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .observation_sql import Rows, rows_from_json

_CONFIGURATIONS = ("config.xml", "config.yaml", "config.yml")


def load() -> None:
    """Import the engine. It changes the current folder for a moment: nothing else may use relative paths meanwhile."""
    with _elsewhere(Path("/")):
        import chdb.session  # noqa: F401


def open_session(folder: Path) -> Any:
    """A chdb session on ``folder``, an absolute path. Raises RuntimeError when it cannot be opened."""
    load()
    with _elsewhere(folder), _stderr_closed():
        from chdb.session import Session

        return Session(str(folder))


def ask(session: Any, statement: str) -> Rows:
    """Run one statement and give its rows. Raises the engine's own RuntimeError or ChdbError."""
    reply = session.query(statement, "JSONEachRow")
    return rows_from_json(reply.bytes())


@contextlib.contextmanager
def _stderr_closed() -> Iterator[None]:
    """The engine writes why it cannot open a folder to descriptor 2 itself: paths, table definitions, excerpts."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def _elsewhere(folder: Path) -> Iterator[None]:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the current folder was removed; the engine's import asks for it
        os.chdir(folder)
        yield
        return
    if not any((here / name).exists() for name in _CONFIGURATIONS):
        yield
        return
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
