"""A recorded operation that a person decides about, and what is needed to look at it and to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ....domain import events as e
from ....domain.errors import DponeError, ErrorCode
from ....domain.explain import holds_now, sentence
from ....domain.operation import Operation
from ....domain.tables import ReplicaLook
from ..attempt import Reporter, Running
from ..compose import Composer
from ..ledger_words import ledger_words
from ..lookup import Found
from ..recorded import composed, recorded_key, running
from ..settings import Settings
from .review import Decision, command


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a person is shown before the decision: what is known, what will be appended, what it excludes."""

    operation: str
    known: Mapping[str, object]
    appends: tuple[str, ...]
    no_longer: tuple[str, ...]


Present = Callable[[Proposal], None]
"""Shows the proposal."""

Confirm = Callable[[Proposal], None]
"""Asks. Raises DponeError (REQUEST_INVALID) when the answer is not yes."""


@dataclass(frozen=True, slots=True)
class Case:
    """What was found in the ledger, and who decides."""

    found: Found
    settings: Settings
    composer: Composer
    reporter: Reporter
    decision: Decision

    @property
    def same_command(self) -> str:
        """What does the same as repeating the command that began the operation."""
        return self.typed("resume")

    def typed(self, *words: str) -> str:
        """A command of the group about this operation, to type."""
        settings = self.settings
        named = ledger_words(settings.ledger_option, settings.environ)
        return command("ops", *words, str(self.found.stream), *named)

    @contextmanager
    def opened(self) -> Iterator[Running]:
        """This process's view, rebuilt now; everything is let go afterwards."""
        composition = composed(self.settings, self.found, self.composer)
        try:
            yield running(composition, self.found, self.settings, self.reporter, self.same_command)
        finally:
            with suppress(DponeError, OSError):
                composition.close()

    def known(
        self, view: Running, looks: Sequence[ReplicaLook] | DponeError, told: Mapping[str, str]
    ) -> dict[str, object]:
        """What the ledger and the replicas say. ``told`` is what is said of each replica."""
        operation, slot, last = view.operation, view.slot, self.found.task
        key = recorded_key(operation)
        replicas: dict[str, object] = dict(told)
        if isinstance(looks, DponeError):
            replicas = dict.fromkeys(view.admitted, f"not known: {looks.what}")
        return {
            "operation_id": str(self.found.stream),
            "process": key.process,
            "target": str(key.target),
            "dag_id": key.dag_id,
            "run_id": key.run_id,
            "state": operation.state.value,
            "holds_now": holds_now(operation),
            "target_commit": operation.target_commit,
            "attempt": operation.attempt,
            **({"last_attempt": f"{last.at} by {last.by.os_user} on {last.by.host}"} if last is not None else {}),
            "same_command": sentence(self.found.next),
            "live_generation": slot.live.generation if slot.live is not None else None,
            "guard": _guard(view),
            "replicas": replicas,
        }


def look(view: Running) -> tuple[ReplicaLook, ...] | DponeError:
    """Every admitted replica now, or why none could be looked at."""
    try:
        view.ports.platform.acquire()
        looks = view.ports.platform.look(view.request.key.target)
    except DponeError as error:
        return error
    admitted = view.admitted
    return tuple(one for one in looks if one.replica in admitted)


def recovers_by_itself(case: Case) -> DponeError:
    """The same command is the recovery; evidence would have to say why it cannot be used."""
    return DponeError(
        ErrorCode.REQUEST_INVALID,
        f"This is not needed: {sentence(case.found.next)[0].lower()}{sentence(case.found.next)[1:]} "
        "If it cannot be used, say why with --evidence.",
        safe="Nothing was changed.",
        next=case.same_command,
    )


def moved_on(case: Case, operation: Operation) -> DponeError:
    """What was shown is not what holds any more."""
    return DponeError(
        ErrorCode.LEDGER_CONFLICT,
        f"The operation or its target moved on while this was decided; it is {operation.state} now.",
        safe="Nothing of this decision was recorded.",
        next=case.typed("explain"),
    )


def live_generation(view: Running) -> str | None:
    """The generation that the slot knows as live."""
    return view.slot.live.generation if view.slot.live is not None else None


def _guard(view: Running) -> str | None:
    guard = view.slot.guard
    if guard is None or guard.operation != view.request.operation:
        return None
    return f"held by attempt {guard.attempt}: its reader may still be running"


def released(view: Running) -> list[e.Event]:
    """The event that frees the slot of this operation's guard, if it is held, by the operation's current attempt."""
    guard = view.slot.guard
    if guard is None or guard.operation != view.request.operation:
        return []
    return [
        e.ReaderGuardReleased(at=view.now(), guard=guard.id, operation=guard.operation, attempt=view.operation.attempt)
    ]
