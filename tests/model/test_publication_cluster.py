"""The search for a counterexample to the sentence that clusters are published by.

The same command later ends COMPLETE with exactly one effective swap on each replica, or INCOMPLETE with the reason;
never two, never a flip back, never a lost predecessor before the proof. From every state that is reached, a single
fresh process comes to the proof once all replicas answer; where the new table is nowhere any more, or a stranger's is
in its place, it stops and says so.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from .cluster import Cluster

THOROUGH = os.environ.get("DPONE_TEST_PROFILE") == "thorough"

Cluster.TestCase.settings = settings(
    max_examples=int(os.environ.get("DPONE_TEST_EXAMPLES", "5000")) if THOROUGH else 300,
    stateful_step_count=50 if THOROUGH else 25,
    deadline=None,
    derandomize=not THOROUGH,
    print_blob=False,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestCluster = Cluster.TestCase
