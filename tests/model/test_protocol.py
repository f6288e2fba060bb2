"""Hypothesis drives the real loop through interleavings of steps, crashes, second attempts, successors and faults.

After every action the promises hold (see ``promises``); at the end of every example all faults cease, all processes
are killed, all late statements run, and one fresh process alone must finish what the slot's holder began.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.operation import State

from .commands import FLAVOURS, KEYS, command
from .processes import Process
from .promises import check_world
from .world import Violation, World

RUNNING_MAX = 3
CALLS = (
    "append",
    "append CandidateStaged",
    "append CapsuleWritten",
    "append PublicationDispatched",
    "append PublicationFenced",
    "append CommitProven",
    "append TargetPending",
    "append ReceiptAccepted",
    "append OperationCompleted",
    "swap",
    "rename",
    "drop",
    "look",
    "fill",
    "open source",
    "reader __dpone",
    "reader orders",
    "read",
)
FAULTS = {
    "append": ("lost", "stored"),
    "read": ("lost",),
    "create": ("lost", "done"),
    "fill": ("lost",),
    "source": ("changed",),
    "swap": ("lost", "late", "twice", "partial", "done"),
    "rename": ("lost", "done"),
    "drop": ("refused", "done"),
    "reader": ("reaped", "unreaped", "does not fit"),
}
TRUE_REFUSALS = (ErrorCode.RETIRED, ErrorCode.TARGET_BLOCKED, ErrorCode.EVIDENCE_MISMATCH)
THOROUGH = os.environ.get("DPONE_TEST_PROFILE") == "thorough"


class Protocol(RuleBasedStateMachine):
    """One target, up to three processes at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(("r1",))
        self.processes: list[Process] = []
        self.flavours: dict[str, str] = {}
        self.keep = 1
        self.changes: set[str] = set()

    @initialize(
        replicas=st.sampled_from([1, 1, 1, 2, 3]),
        flavours=st.fixed_dictionaries({key: st.sampled_from(FLAVOURS) for key in KEYS}),
        keep=st.integers(0, 1),
        published=st.sampled_from([True, True, False]),
        frozen=st.sampled_from(["", *CALLS, *(("rename", "swap") * 4)]),
        fault=st.sampled_from(["", *FAULTS["swap"]]),
        second=st.sampled_from(["", "monday", "monday", "tuesday", "foreign dag"]),
        there=st.sampled_from(CALLS),
        overtaken=st.booleans(),
    )
    def begin(self, replicas: int, published: bool, frozen: str, fault: str, **rest: Any) -> None:
        """A target that was never published to, or one that another run filled before; and a process under way."""
        self.world = World(tuple(f"r{number}" for number in range(1, replicas + 1)))
        self.flavours, self.keep = rest["flavours"], rest["keep"]
        if published:
            earlier = self._start("wednesday")
            earlier.finish()
            self.processes.clear()
        if fault:
            self.world.faults["swap"] = fault
        if frozen:
            self._start("monday").advance_to(frozen)
        if rest["overtaken"] and self.world.pending:
            self.run_late(0, again=False)
        if rest["second"]:
            self._start(rest["second"]).advance_to(rest["there"])

    def _start(self, key: str, *, changed: bool = False) -> Process:
        asked = command(key, self.flavours[key], changed=changed)
        process = Process(self.world, f"{key}/{self.world.number()}", asked, self.keep)
        self.processes.append(process)
        return process

    def _running(self) -> list[Process]:
        return [process for process in self.processes if not process.stepped.ended]

    def _one(self, which: int) -> Process:
        running = self._running()
        return running[which % len(running)]

    @precondition(lambda self: len(self._running()) < RUNNING_MAX)
    @rule(key=st.sampled_from(sorted(KEYS)), changed=st.sampled_from([False, False, False, True]))
    def start(self, key: str, changed: bool) -> None:
        """Somebody types the command (``changed``: with another configuration)."""
        self._start(key, changed=changed)

    @precondition(lambda self: 0 < len(self._running()) < RUNNING_MAX)
    @rule(which=st.integers(0, RUNNING_MAX - 1), call=st.sampled_from(CALLS))
    def start_again(self, which: int, call: str) -> None:
        """The same command is typed while its process is still there, and goes far enough to take over."""
        key = next(key for key in KEYS if KEYS[key] == self._one(which).request.key)
        self._start(key).advance_to(call)

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, RUNNING_MAX - 1), calls=st.integers(1, 12))
    def advance(self, which: int, calls: int) -> None:
        """One process makes some calls."""
        self._one(which).advance(calls)

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, RUNNING_MAX - 1), call=st.sampled_from(CALLS), late=st.booleans())
    def advance_to(self, which: int, call: str, late: bool) -> None:
        """One process goes on until it stands before such a call; there a late statement may overtake it."""
        self._one(which).advance_to(call)
        if late and self.world.pending:
            self.run_late(0, again=False)

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, RUNNING_MAX - 1))
    def finish(self, which: int) -> None:
        """One process runs to its end."""
        self._one(which).finish()

    @precondition(lambda self: self._running())
    @rule(which=st.integers(0, RUNNING_MAX - 1), really=st.booleans())
    def crash(self, which: int, really: bool) -> None:
        """One process dies where it stands."""
        if really:
            self._one(which).crash()

    @rule(data=st.data(), port=st.sampled_from([*sorted(FAULTS), "swap", "swap", "rename"]))
    def arm(self, data: Any, port: str) -> None:
        """The next call of this port goes wrong."""
        self.world.faults[port] = data.draw(st.sampled_from(FAULTS[port]))
        self.world.trace.append(f"armed: {port} {self.world.faults[port]}")

    @precondition(lambda self: self.world.pending)
    @rule(which=st.integers(0, 5), again=st.booleans())
    def late(self, which: int, again: bool) -> None:
        """A statement that was thought lost runs now, and perhaps once more later."""
        self.run_late(which, again=again)

    def run_late(self, which: int, *, again: bool) -> None:
        statement = self.world.pending[which % len(self.world.pending)]
        done = self.world.run(statement)
        self.world.trace.append(f"late {statement}: {'done' if done else 'failed'}")
        if not again:
            self.world.pending.remove(statement)

    @rule(replica=st.integers(0, 2), back=st.sampled_from([True, True, False]))
    def lose(self, replica: int, back: bool) -> None:
        """A replica stops answering, or answers again."""
        name = self.world.replicas[replica % len(self.world.replicas)]
        (self.world.unreachable.discard if back else self.world.unreachable.add)(name)

    @rule(rows=st.sampled_from([0, 2, 2, 4, 4]))
    def change_source(self, rows: int) -> None:
        """The source has other rows now; without any, the gate fails."""
        self.world.rows = rows

    @precondition(lambda self: self.world.ledger.slot.version > 2 and not self.world.meddled)
    @rule(replica=st.integers(0, 2), really=st.sampled_from([False] * 9 + [True]))
    def meddle(self, replica: int, really: bool) -> None:
        """Somebody else puts a table of their own in the target's place."""
        if really:
            name = self.world.replicas[replica % len(self.world.replicas)]
            self.world.meddle(name)
            self.world.trace.append(f"meddled on {name}")

    @invariant()
    def promises_hold(self) -> None:
        check_world(self.world)

    def teardown(self) -> None:
        try:
            self._one_fresh_process_alone_finishes()
        finally:
            for process in self._running():
                process.stepped.crash()
            note("\n".join(self.world.trace))

    def _one_fresh_process_alone_finishes(self) -> None:
        for process in self._running():
            process.crash()
        self.world.faults.clear()
        self.world.unreachable.clear()
        self.world.rows = 2
        for statement in self.world.pending:
            self.world.run(statement)
        self.world.pending.clear()
        check_world(self.world)
        if not self.flavours:
            return
        held = self.world.ledger.slot.holder
        holders = [key for key in KEYS if held and KEYS[key].run_id == held.run_id and KEYS[key].dag_id == held.dag_id]
        for key in [*holders, *(key for key in sorted(KEYS) if key not in holders)]:
            self._finishes_alone(key)
            check_world(self.world)
        holder = self.world.ledger.slot.holder
        if holder is not None and not self.world.meddled:
            raise Violation("the target is held for ever")

    def _to_the_end(self, key: str, changed: bool) -> BaseException | None:
        process = self._start(key, changed=changed)
        process.finish()
        return process.stepped.error

    def _finishes_alone(self, key: str) -> None:
        operation = self.world.ledger.operation(KEYS[key])
        original = command(key, self.flavours[key])
        changed = operation.configuration_digest not in ("", original.configuration_digest)
        error = self._to_the_end(key, changed)
        if isinstance(error, DponeError) and error.code is ErrorCode.EVIDENCE_FAILED:
            error = self._to_the_end(
                key, changed
            )  # the rows that had been staged fail their gate; now they are read anew
        if error is None:
            if self.world.ledger.operation(KEYS[key]).state is not State.COMPLETE:
                raise Violation("success, and it is not complete")
            return
        if not isinstance(error, DponeError):
            raise error
        if error.code not in TRUE_REFUSALS and not self.world.meddled:
            raise Violation(f"{key} alone ends with {error.code}: {error.what}")


Protocol.TestCase.settings = settings(
    max_examples=5_000 if THOROUGH else 300,
    stateful_step_count=60 if THOROUGH else 30,
    deadline=None,
    derandomize=not THOROUGH,
    print_blob=False,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestProtocol = Protocol.TestCase
