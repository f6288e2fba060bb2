"""A person's decisions in the model: ending an operation, and stopping new claims, while everything else goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dpone.adapters.runtime.attempt import Invocation, Ports, Running
from dpone.adapters.runtime.lookup import Found
from dpone.adapters.runtime.reviewing.case import Case, Proposal
from dpone.adapters.runtime.reviewing.guarding import release_guard as releasing
from dpone.adapters.runtime.reviewing.retiring import retire
from dpone.adapters.runtime.reviewing.review import Decision
from dpone.domain.errors import DponeError, EngineFailed, ErrorCode
from dpone.domain.events import AttemptStarted, By, Review, SlotHeld, SlotUnheld
from dpone.domain.explain import next_for, same_request
from dpone.domain.identity import operation_id
from dpone.domain.ports import StreamAppend

from .commands import command
from .processes import Clock, Process, _Ids, _Ledger, _Platform, _Quiet, _Reader, _Source
from .promises import expect
from .scheduling import Crashed, Stepped
from .world import SLOT, World

AT = "2026-01-02T03:04:05.000000Z"
BY = By(os_user="ada", host="shell", version="1.0.0")


@dataclass(frozen=True, slots=True)
class ModelCase(Case):
    """A case whose outside is the model's."""

    view: Running

    def typed(self, *words: str) -> str:
        return " ".join(["dpone ops", *words, str(self.found.stream)])

    @contextmanager
    def opened(self) -> Iterator[Running]:
        self.view.rebuild()
        yield self.view


class Retirement(Process):
    """``ops retire`` with evidence and a yes: it stops before every call, as a run does."""

    def __init__(self, world: World, key: str) -> None:
        super().__init__(world, f"retire {key}", command(key, "observed"), 1)

    def _body(self, stepped: Stepped) -> None:
        ports = Ports(_Ledger(self), _Source(self), _Platform(self), _Reader(self), Clock(), _Ids(self.world))
        self.running = Running(ports, self.request, Invocation(BY, 1, "dpone ops resume"), _Quiet())
        decision = Decision("Ada", "skipped", BY, "nobody is left")
        case = ModelCase(self._found(), None, None, _Quiet(), decision, self.running)  # type: ignore[arg-type]
        retire(case, _seen, _seen)

    def _found(self) -> Found:
        ledger, key = self.world.ledger, self.request.key
        operation, slot = ledger.operation(key), ledger.slot
        events = tuple(ledger.events(key))
        assert any(isinstance(event, AttemptStarted) for event in events), "there is nothing to end"
        step = next_for(operation, slot, None, same_request(operation))
        return Found(operation_id(key), events, operation, slot, step)

    def _ended(self) -> None:
        error = self.stepped.error
        self.world.trace.append(f"{self.name}: ended, {getattr(error, 'code', error)!s}")
        if error is not None and not isinstance(error, DponeError | Crashed):
            raise error
        if error is None:
            expect(self.world.ledger.operation(self.request.key).state == "RETIRED", "ended, and it is not")


def release_guard(world: World, key: str) -> dict[str, object]:
    """``ops release-guard`` at one moment, while no replica can be looked at. What it answered."""
    request = command(key, "observed")
    ports: Any = Ports(world.ledger, None, _Unreachable(), None, Clock(), _Ids(world))  # type: ignore[arg-type]
    view = Running(ports, request, Invocation(BY, 1, "dpone ops resume"), _Quiet())
    events = tuple(world.ledger.events(request.key))
    operation, slot = world.ledger.operation(request.key), world.ledger.slot
    step = next_for(operation, slot, None, same_request(operation))
    found = Found(operation_id(request.key), events, operation, slot, step)
    decision = Decision("Ada", "its host is gone", BY, "the console shows it")
    case = ModelCase(found, None, None, _Quiet(), decision, view)  # type: ignore[arg-type]
    return releasing(case, _seen, _seen).result


class _Unreachable:
    """A platform that cannot be looked at: what is known says so, and the decision does not rest on it."""

    replicas = ("r1",)

    def acquire(self) -> None:
        raise EngineFailed(ErrorCode.REPLICA_UNREACHABLE, "No replica answers.")

    def release(self) -> None:
        pass


def hold(world: World) -> None:
    """A person stops new claims."""
    _decide(world, SlotHeld(at=AT, review=Review(name="Ada", reason="wrong", by=BY)))


def unhold(world: World) -> None:
    """A person allows them again."""
    _decide(world, SlotUnheld(at=AT, review=Review(name="Ada", reason="right", by=BY)))


def _decide(world: World, event: SlotHeld | SlotUnheld) -> None:
    world.ledger.append([StreamAppend(SLOT, world.ledger.slot.version, (event,))])


def _seen(proposal: Proposal) -> None:
    """A person reads it and says yes."""
