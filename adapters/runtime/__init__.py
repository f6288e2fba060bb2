"""The loop that runs and recovers operations, one module a kind of step, and the root that wires the ports.

``loop`` asks :func:`dpone.domain.steps.next_step` and performs the answer; ``compose`` is the only place that reads
the environment.
"""
