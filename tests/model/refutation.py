"""One search for a counterexample, as a process of its own: ``python -m tests.model.refutation "MUTATION"``.

Hypothesis draws some values from the constants of whatever modules are imported. In a process that runs other tests as
well a search therefore takes another way each time; here the seed alone decides, and each is known to lead there.
Ends with 0 when the decisions without this rule were refuted, with 1 when they were not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from .cluster import BEGINNING, RUNNING_MAX, Cluster
from .mutations import MUTATIONS
from .world import Violation

World = TypeVar("World", bound=Cluster)
SEARCH = settings(
    max_examples=1_500,
    stateful_step_count=20,
    deadline=None,
    print_blob=False,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
SMALL: Final[dict[str, st.SearchStrategy[Any]]] = {
    **BEGINNING,
    "size": st.sampled_from([1, 2]),
    "flavour": st.just("version 1"),
    "late_runs": st.just(True),
}
OFTEN_TWICE: Final = {**SMALL, "fates": st.lists(st.sampled_from(["twice", "late"]), min_size=2, max_size=2)}
AT_ONCE: Final[dict[str, st.SearchStrategy[Any]]] = {
    **SMALL,
    "fates": st.just([""] * 2),
    "size": st.just(2),
    "late_runs": st.just(True),
}
AT_CLAIM: Final = {**AT_ONCE, "published": st.just(True), "stands": st.sampled_from(["swap", "its end"])}
AT_THE_END: Final = {**AT_ONCE, "keep": st.just(0), "stands": st.sampled_from(["swap", "append OperationCompleted"])}


def without(*rules: str) -> Callable[[type[World]], type[World]]:
    """A smaller world: these rules never happen in it."""

    def smaller(world: type[World]) -> type[World]:
        for rule_name in rules:
            if not hasattr(world, rule_name):
                raise LookupError(rule_name)
            setattr(world, rule_name, None)
        return world

    return smaller


@without("go_on", "answer", "wipe", "arm", "change_inventory", "meddle", "decide")
class Queue(Cluster):
    """Nothing but processes and a queue that runs late and twice."""

    @initialize(given=st.fixed_dictionaries(OFTEN_TWICE))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)


@without("go_on", "answer", "late", "decide", "change_inventory", "meddle")
class Losses(Cluster):
    """Nothing but processes that die and replicas that lose their tables."""

    @initialize(given=st.fixed_dictionaries(AT_ONCE))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)


@without("go_on", "answer", "late", "decide", "arm", "wipe", "meddle")
class Owner(Cluster):
    """Nothing but processes and the platform's owner."""

    @initialize(given=st.fixed_dictionaries(AT_CLAIM))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)

    @precondition(lambda self: len(self._running()) < RUNNING_MAX)
    @rule(key=st.sampled_from(["monday", "tuesday"]))
    def wire(self, key: str) -> None:
        """A process is wired to the replicas of this moment, and goes no further."""
        self._start(key)


@without("go_on", "answer", "late", "decide", "arm", "wipe", "change_inventory", "meddle")
class Stranger(Cluster):
    """Nothing but processes and somebody else."""

    @initialize(given=st.fixed_dictionaries(AT_THE_END))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)

    @precondition(lambda self: self.world.ledger.slot.version > 2 and not self.world.meddled)
    @rule(replica=st.integers(0, 1))
    def come(self, replica: int) -> None:
        """Their table appears, where the target is or where one is about to be dropped."""
        self.put_strangers_tables(replica)


@dataclass(frozen=True)
class Search:
    """Where a counterexample is searched for, and a seed that leads to one."""

    seed: int
    world: type[RuleBasedStateMachine] = Cluster


SEARCHES: Final = {
    "UNREACHABLE treated as DESIRED": Search(2),
    "two-step rename in the obvious order": Search(1, Queue),
    "candidate names reused between attempts": Search(1, Queue),
    "no seal": Search(1, Queue),
    "no second look": Search(7, Queue),
    "an unfinished rebuild counts": Search(6, Losses),
    "LOST treated as MISSING": Search(1, Losses),
    "an excluded replica counts": Search(1, Owner),
    "an admitted replica does not count": Search(6, Owner),
    "slot append at the head": Search(2, Owner),
    "FOREIGN treated as the predecessor": Search(1, Stranger),
    "dropped by name instead of identity": Search(1, Stranger),
}


def is_refuted(mutation: str, number: int | None = None) -> bool:
    """Whether the search meets a broken promise within its examples, once the mutation has taken a rule away."""
    search = SEARCHES.get(mutation, Search(1))
    with pytest.MonkeyPatch.context() as patch:
        MUTATIONS[mutation](patch)
        try:
            run_state_machine_as_test(seed(number or search.seed)(search.world), settings=SEARCH)
        except Violation:
            return True
    return False


if __name__ == "__main__":
    sys.exit(not is_refuted(sys.argv[1], *map(int, sys.argv[2:])))
