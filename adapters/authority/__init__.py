"""A cluster as a platform: who may hold targets, and which ledger that is recorded in.

``topology`` reads what the servers say of themselves; ``marker`` is what stands on each of them; ``provision``,
``attest``, ``admit``, ``exclusion`` and ``adopt`` are the platform owner's commands, each an event; ``opening`` is what
every run does first; ``status`` shows live beside admitted.
"""
