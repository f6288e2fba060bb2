"""Who decides, why, and on what evidence: checked once, recorded with the event."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ....domain.errors import DponeError, ErrorCode
from ....domain.events import By, Review
from ....domain.identity import identity_problem


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision. ``evidence`` says why the same command cannot be used, or what an outcome rests on."""

    name: str
    reason: str
    by: By
    evidence: str | None = None

    @property
    def words(self) -> str:
        """The reason as it is recorded, the evidence with it."""
        return self.reason if self.evidence is None else f"{self.reason} (evidence: {self.evidence})"

    @property
    def review(self) -> Review:
        """As it stands in an event."""
        return Review(name=self.name, reason=self.words, by=self.by)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a command: its document's result, and what changed as sentences (empty: it was so already)."""

    result: dict[str, object]
    changes: tuple[str, ...] = ()


def decision(name: str, reason: str, by: By, evidence: str | None = None) -> Decision:
    """The decision, its texts checked. Raises DponeError (REQUEST_INVALID)."""
    texts = [("--reviewed-by", name), ("--reason", reason)]
    for option, value in [*texts, ("--evidence", evidence)] if evidence is not None else texts:
        problem = identity_problem(f"value of {option}", value or "")
        if problem is not None:
            raise invalid(problem, f"Give {option} 1 to 250 printable characters.")
    return Decision(name, reason, by, evidence)


def invalid(what: str, next_: str) -> DponeError:
    """The request is wrong, or what it asks for is not allowed here. Nothing was changed."""
    return DponeError(ErrorCode.REQUEST_INVALID, what, safe="Nothing was read or changed.", next=next_)


def command(*words: str) -> str:
    """A command to type, quoted for a shell."""
    return shlex.join(["dpone", *words])
