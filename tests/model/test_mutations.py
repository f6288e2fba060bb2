"""The search finds faults: each mutation of the decisions is refuted within the examples of the short profile."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .cluster import Cluster
from .mutations import MUTATIONS

SEARCH = settings(
    max_examples=1_500,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    print_blob=False,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_search_refutes(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[mutation](monkeypatch)
    with pytest.raises(BaseException) as refuted:
        run_state_machine_as_test(Cluster, settings=SEARCH)
    assert not isinstance(refuted.value, KeyboardInterrupt)
