"""A publication on one to seven replicas as a Hypothesis state machine: what to search, and in which profile."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dpone.domain.errors import DponeError

from . import owner
from .commands import command
from .endings import expected
from .processes import Process
from .promises import check_world
from .statements import FATES
from .world import TARGET, Violation, World

RUNNING_MAX = 3
SIZES = (1, 2, 2, 3, 3, 5, 7)
CALLS = (
    "look",
    "append PublicationDispatched",
    "append PublicationFenced",
    "append CommitProven",
    "append InventoryReduced",
    "append",
    "swap",
    "rename",
    "rebuild",
    "synchronise",
    "reader orders",
    "append OperationCompleted",
    "drop",
    "open source",
)
STANDS = ("swap", "swap", "append PublicationDispatched", "append CapsuleWritten", "append StagedObserved")
FAULTS = {
    "swap": ("done",),
    "rename": ("lost", "done"),
    "rebuild": ("unsynchronised",),
    "append": ("lost", "stored"),
    "drop": ("refused", "done"),
    "reader": ("reaped", "unreaped"),
}
_which = st.integers(0, RUNNING_MAX - 1)
_replica = st.integers(0, max(SIZES) - 1)
_fate = st.sampled_from(["", "", *FATES])
BEGINNING: Final[dict[str, st.SearchStrategy[Any]]] = {
    "size": st.sampled_from(SIZES),
    "exchanges": st.booleans(),
    "published": st.sampled_from([True, True, False]),
    "keep": st.integers(0, 1),
    "flavour": st.sampled_from(["version 1", "version 1", "observed", "not durable"]),
    "stands": st.sampled_from(STANDS),
    "fates": st.lists(_fate, min_size=max(SIZES), max_size=max(SIZES)),
    "late_runs": st.booleans(),
}


class Cluster(RuleBasedStateMachine):
    """One target; the run ``monday``, begun and looked at from its first dispatch on."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(("r1",))
        self.processes: list[Process] = []
        self.keep = 1
        self.flavour = "observed"
        self.late_runs = True

    @initialize(given=st.fixed_dictionaries(BEGINNING))
    def begin(self, given: dict[str, Any]) -> None:
        """Where the story sets out."""
        self.set_out(**given)

    def set_out(self, size: int, published: bool, stands: str, fates: list[str], **rest: Any) -> None:
        """A target that was never published to, or one that another run filled before; and a process under way."""
        self.world = World(tuple(f"r{number}" for number in range(1, size + 1)), exchanges=rest["exchanges"])
        self.keep, self.flavour, self.late_runs = rest["keep"], rest["flavour"], rest["late_runs"]
        if published:
            self._start("wednesday").finish()
            self.processes.clear()
        self.world.fates = {replica: fate for replica, fate in zip(self.world.replicas, fates, strict=False) if fate}
        self._tell(f"{size} replicas, exchanges {rest['exchanges']}, published {published}, fates {self.world.fates}")
        self._start("monday").advance_to(stands)

    # ------------------------------------------------------------------------------------------------ processes

    @precondition(lambda self: len(self._running()) < RUNNING_MAX)
    @rule(call=st.sampled_from(CALLS), key=st.sampled_from(["monday"] * 5 + ["tuesday"]))
    def start(self, call: str, key: str) -> None:
        """The same command again (or the next run's), as far as such a call."""
        self._start(key).advance_to(call)

    @precondition(lambda self: self._running())
    @rule(which=_which, calls=st.integers(1, 8))
    def advance(self, which: int, calls: int) -> None:
        """One process makes some calls."""
        self._one(which).advance(calls)

    @precondition(lambda self: self._running())
    @rule(which=_which, call=st.sampled_from(CALLS))
    def advance_to(self, which: int, call: str) -> None:
        """One process goes on until it stands before such a call."""
        self._one(which).advance_to(call)

    @precondition(lambda self: self._running())
    @rule(which=_which, dies=st.booleans())
    def end(self, which: int, dies: bool) -> None:
        """One process dies where it stands, or runs to its end."""
        if dies:
            self._one(which).crash()
        else:
            self._one(which).finish()

    # ------------------------------------------------------------------------------------------------ servers

    @rule(replica=_replica, fate=_fate)
    def decide(self, replica: int, fate: str) -> None:
        """What becomes of the next statement there."""
        self.world.fates[self._name(replica)] = fate
        self._tell(f"next on {self._name(replica)}: {fate or 'runs now'}")

    @precondition(lambda self: self.world.pending)
    @rule(which=st.integers(0, 9), unmarked=st.sampled_from([False, False, True]))
    def late(self, which: int, unmarked: bool) -> None:
        """A statement runs now. An entry of the queue whose mark was not written will run again."""
        statement = self.world.pending[which % len(self.world.pending)]
        done = self.world.run(statement)
        self._tell(f"late {statement}: {'done' if done else 'failed'}")
        if not (unmarked and statement.queued):
            self.world.pending.remove(statement)

    @rule(replica=_replica, dies=st.booleans())
    def go_on(self, replica: int, dies: bool) -> None:
        """A server goes on with what stands between two steps, or starts anew."""
        (self.world.die if dies else self.world.resume)(self._name(replica))

    @rule(replica=_replica, up=st.sampled_from([True, True, False]))
    def answer(self, replica: int, up: bool) -> None:
        """A replica stops answering, or answers again."""
        name = self._name(replica)
        (self.world.unreachable.discard if up else self.world.unreachable.add)(name)
        self._tell(f"{name} {'answers' if up else 'does not answer'}")

    @rule(replica=_replica, really=st.sampled_from([False, False, True]))
    def wipe(self, replica: int, really: bool) -> None:
        """A replica comes back with an empty folder."""
        if really:
            self.world.wipe(self._name(replica))
            self._tell(f"{self._name(replica)} lost all its tables")

    @rule(port=st.sampled_from(sorted(FAULTS)), data=st.data())
    def arm(self, port: str, data: Any) -> None:
        """The next call of this port goes wrong, or its reply is lost."""
        self.world.faults[port] = data.draw(st.sampled_from(FAULTS[port]))
        self._tell(f"armed: {port} {self.world.faults[port]}")

    # ------------------------------------------------------------------------------------------------ people

    @rule(replica=_replica, back=st.booleans())
    def change_inventory(self, replica: int, back: bool) -> None:
        """The platform's owner takes a replica out, or lets it in again."""
        name = self._name(replica)
        if (owner.admit if back else owner.exclude)(self.world, name):
            self._tell(f"{'admitted' if back else 'excluded'} {name}")

    @rule(replica=_replica, really=st.sampled_from([False] * 9 + [True]))
    def meddle(self, replica: int, really: bool) -> None:
        """Somebody else puts a table of their own in the target's place, and where one is about to be dropped."""
        if really and self.world.ledger.slot.version > 2:
            self.put_strangers_tables(replica)

    def put_strangers_tables(self, replica: int) -> None:
        for name in (TARGET.table, *self.world.ledger.slot.retirements):
            self.world.meddle(self._name(replica), name)
            self._tell(f"meddled on {self._name(replica)}: {name}")

    # ------------------------------------------------------------------------------------------------ promises

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
        self._quiet()
        if self.late_runs:
            self._run_all_late()
        check_world(self.world)
        self._ends_as_expected("monday")
        self._run_all_late()
        check_world(self.world)
        self._ends_as_expected("tuesday")
        self._run_all_late()
        check_world(self.world)

    def _quiet(self) -> None:
        for replica in self.world.replicas:
            self.world.resume(replica)
        self.world.faults.clear()
        self.world.fates.clear()
        self.world.unreachable.clear()

    def _run_all_late(self) -> None:
        for statement in self.world.pending:
            done = self.world.run(statement)
            self._tell(f"at last {statement}: {'done' if done else 'failed'}")
        self.world.pending.clear()

    def _ends_as_expected(self, key: str) -> None:
        request = command(key, self.flavour)
        endings = expected(self.world, request)
        process = self._start(key)
        process.finish()
        error = process.stepped.error
        if error is not None and not isinstance(error, DponeError):
            raise error
        found = None if error is None else error.code
        if found not in endings:
            wanted = " or ".join(sorted(str(code or "success") for code in endings))
            raise Violation(f"{key} alone ends with {found or 'success'} and not with {wanted}: {error}")

    def _start(self, key: str) -> Process:
        process = Process(self.world, f"{key}/{self.world.number()}", command(key, self.flavour), self.keep)
        self.processes.append(process)
        return process

    def _running(self) -> list[Process]:
        return [process for process in self.processes if not process.stepped.ended]

    def _one(self, which: int) -> Process:
        running = self._running()
        return running[which % len(running)]

    def _name(self, replica: int) -> str:
        return self.world.replicas[replica % len(self.world.replicas)]

    def _tell(self, what: str) -> None:
        self.world.trace.append(what)
