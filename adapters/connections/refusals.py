"""The ways a connection is refused. Names of references and variables are told; hosts, ports and passwords never."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.errors import DponeError, ErrorCode

_UNTOUCHED = "Nothing was read or changed."


class Unanswered(DponeError):
    """Nothing answers where the connection points: unlike any other refusal, this may pass by itself."""


def not_found(reference: str, looked_for: Sequence[str]) -> DponeError:
    """No provider knows the reference."""
    return DponeError(
        ErrorCode.CONNECTION_NOT_FOUND,
        f"The connection {reference!r} is not known. Looked for: {', '.join(looked_for)}.",
        safe=_UNTOUCHED,
        next=f"Set {looked_for[0]} (with _PORT, _DATABASE, _USERNAME, _PASSWORD as needed), or use connections.toml.",
    )


def invalid(where: str, problem: str, remedy: str) -> DponeError:
    """A provider knows the reference but says something that cannot be meant. ``where`` is a variable or a key."""
    return DponeError(ErrorCode.REQUEST_INVALID, f"{where} {problem}.", safe=_UNTOUCHED, next=remedy)


def refused(reference: str, problem: str, remedy: str, kind: type[DponeError] = DponeError) -> DponeError:
    """The server was not reached (:class:`Unanswered`), or did not let us in."""
    return kind(
        ErrorCode.CONNECTION_REFUSED,
        f"The connection {reference!r} {problem}.",
        safe="Nothing of the source was published; the live table is as it was.",
        next=remedy,
    )
