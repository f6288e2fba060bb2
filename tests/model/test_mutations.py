"""The search finds faults: each mutation of the decisions is refuted within the examples of the short profile.

What needs a long story is searched for in a smaller world: fewer replicas, and only what such a story is made of.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from .cluster import BEGINNING, RUNNING_MAX, Cluster
from .mutations import MUTATIONS

SEARCH = settings(
    max_examples=1_500,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
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


class Queue(Cluster):
    """Nothing but processes and a queue that runs late and twice."""

    go_on = answer = wipe = arm = change_inventory = meddle = decide = None  # type: ignore[assignment]

    @initialize(given=st.fixed_dictionaries(OFTEN_TWICE))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)


class Losses(Cluster):
    """Nothing but processes that die and replicas that lose their tables."""

    go_on = answer = late = decide = change_inventory = meddle = None  # type: ignore[assignment]

    @initialize(given=st.fixed_dictionaries(AT_ONCE))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)


class Owner(Cluster):
    """Nothing but processes and the platform's owner."""

    go_on = answer = late = decide = arm = wipe = meddle = None  # type: ignore[assignment]

    @initialize(given=st.fixed_dictionaries(AT_CLAIM))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)

    @precondition(lambda self: len(self._running()) < RUNNING_MAX)
    @rule(key=st.sampled_from(["monday", "tuesday"]))
    def wire(self, key: str) -> None:
        """A process is wired to the replicas of this moment, and goes no further."""
        self._start(key)


class Stranger(Cluster):
    """Nothing but processes and somebody else."""

    go_on = answer = late = decide = arm = wipe = change_inventory = meddle = None  # type: ignore[assignment]

    @initialize(given=st.fixed_dictionaries(AT_THE_END))
    def begin(self, given: dict[str, Any]) -> None:
        self.set_out(**given)

    @precondition(lambda self: self.world.ledger.slot.version > 2 and not self.world.meddled)
    @rule(replica=st.integers(0, 1))
    def come(self, replica: int) -> None:
        """Their table appears, where the target is or where one is about to be dropped."""
        self.put_strangers_tables(replica)


WHERE: dict[str, type[RuleBasedStateMachine]] = {
    "two-step rename in the obvious order": Queue,
    "candidate names reused between attempts": Queue,
    "no seal": Queue,
    "no second look": Queue,
    "an unfinished rebuild counts": Losses,
    "LOST treated as MISSING": Losses,
    "an excluded replica counts": Owner,
    "an admitted replica does not count": Owner,
    "slot append at the head": Owner,
    "FOREIGN treated as the predecessor": Stranger,
    "dropped by name instead of identity": Stranger,
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_search_refutes(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[mutation](monkeypatch)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(WHERE.get(mutation, Cluster), settings=SEARCH)


@pytest.mark.parametrize("world", [Queue, Losses, Owner, Stranger])
def test_nothing_is_refuted_where_no_rule_is_taken_away(world: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(world, settings=settings(SEARCH, max_examples=60))
