"""What named interleavings have in common: a world, its published generation, and where a run may freeze."""

from __future__ import annotations

from dpone.domain import events as e
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.operation import State

from .commands import KEYS, command
from .processes import Process
from .world import World

MIDDLE = (
    "append StagingOpened",
    "create",
    "open source",
    "fill",
    "append SourceObserved",
    "append StagedObserved",
    "append GatesEvaluated",
    "append CapsuleWritten",
    "append PublicationDispatched",
    "swap",
    "append CommitProven",
    "append TargetPending",
    "reader orders",
    "append TargetObserved",
    "append ReceiptAccepted",
    "append ReaderGuardReleased",
    "append OperationCompleted",
)


class Scene:
    """A world with a published generation, and commands to start in it."""

    def __init__(self, *, replicas: int = 1, keep: int = 1, published: bool = True) -> None:
        self.world = World(tuple(f"r{number}" for number in range(1, replicas + 1)))
        self.keep = keep
        if published:
            self.start("wednesday").finish()

    def start(self, key: str = "monday", flavour: str = "observed", *, changed: bool = False) -> Process:
        return Process(self.world, key, command(key, flavour, changed=changed), self.keep)

    def state(self, key: str = "monday") -> State:
        return self.world.ledger.operation(KEYS[key]).state

    def count(self, kind: type[e.Event], key: str = "monday") -> int:
        return sum(isinstance(event, kind) for event in self.world.ledger.events(KEYS[key]))

    def live_is(self, key: str = "monday") -> bool:
        generation = self.world.ledger.operation(KEYS[key]).generation
        assert generation is not None
        identities = generation.identities or {}
        tables = {replica: self.world.live(replica) for replica in self.world.replicas}
        return all(table is not None and table.identity == identities[r] for r, table in tables.items())


def code(process: Process) -> ErrorCode | None:
    """How a process ended: None for success."""
    assert process.stepped.ended
    if process.stepped.error is None:
        return None
    assert isinstance(process.stepped.error, DponeError)
    return process.stepped.error.code
