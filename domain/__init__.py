"""The decisions: pure functions over frozen values.

Nothing in this room does I/O, reads a clock, starts a thread or imports the other rooms. ``operation``, ``slot``
and ``platform`` fold events into state; ``steps`` holds :func:`~dpone.domain.steps.next_step`, the only place where
order is decided; ``ports`` names what the outside world must offer.
"""
