"""What a store that lies behind SQL needs of a connection. The command line's room makes them; this room never does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class SqlFailed(Exception):
    """A statement failed. ``code`` is ClickHouse's error number, None when no answer came (its outcome is unknown).

    ``exists`` tells that the server's answer names a Keeper node that exists already. No server's text is kept.
    """

    def __init__(self, code: int | None, *, exists: bool = False) -> None:
        super().__init__("a statement failed")
        self.code = code
        self.exists = exists


class SqlSession(Protocol):
    """Runs statements, one at a time, each within a bound, and connects again by itself after a failure."""

    def run(self, statement: str) -> Sequence[Sequence[str]]:
        """The rows, every value as text. Statements are at most 4 MiB. Raises SqlFailed, DponeError."""
        ...

    def close(self) -> None:
        """Let go of the connection. Idempotent."""
        ...


Connect = Callable[[str], SqlSession]
"""From a connection's reference to a session. Raises DponeError: not found, refused."""
